package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// Refusal is a connection that was refused, with the repair.
type Refusal struct {
	Sentence string // what is wrong, and what to do
	// Mends says that waiting may help: a file that is being replaced, a server
	// that is starting.
	Mends bool
	Err   error
}

func (r *Refusal) Error() string { return r.Sentence + ": " + r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// Service is whose connections are explained.
type Service struct {
	Name string // "Kafka"
	TLS  TLS
	// What the settings are called where a user writes them.
	Switch, CA, Cert, ServerName string
}

// Explain gives an error of a connection its sentence, by its type. What it
// does not know it returns as it is.
func (s Service) Explain(err error) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*Refusal](err); known {
		return err
	}
	if file, ok := errors.AsType[*FileError](err); ok {
		return &Refusal{fmt.Sprintf("a file for connections to %s cannot be used, it is read again for the next one: %s", s.Name, file.File), true, file}
	}
	if sentence := s.certificate(err); sentence != "" {
		return &Refusal{Sentence: sentence, Err: err}
	}
	return s.connection(err)
}

// certificate explains why we do not take the server's certificate.
func (s Service) certificate(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		if s.TLS.CAFile == "" {
			return fmt.Sprintf("%s's certificate is signed by no authority of this system: name the file of its authority in %s", s.Name, s.CA)
		}
		return fmt.Sprintf("%s's certificate is signed by no authority in %s: put the certificate of its authority into %s", s.Name, s.TLS.CAFile, s.CA)
	}
	if host, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("%s's certificate is for %s and not for %s: use one of its names, or a certificate for this one%s",
			s.Name, names(host.Certificate), host.Host, s.orServerName())
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Cert != nil {
		if invalid.Reason == x509.Expired {
			return fmt.Sprintf("%s's certificate is valid from %s to %s only: give the server a new one (or set this machine's clock)",
				s.Name, day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter))
		}
		return s.Name + "'s certificate is not made for this: give the server another one"
	}
	return ""
}

func (s Service) orServerName() string {
	if s.ServerName == "" {
		return ""
	}
	return ", or set " + s.ServerName
}

func names(c *x509.Certificate) string {
	if c == nil {
		return "another host"
	}
	all := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "no host"
	}
	return strings.Join(all, ", ")
}

func day(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// connection explains what the server does not take.
func (s Service) connection(err error) error {
	refused := isAlert(err)
	_, plain := errors.AsType[*PlainToTLSError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	gone := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
	since, over := s.TLS.Expired(time.Now())
	switch {
	case plain:
		return &Refusal{Sentence: fmt.Sprintf("%s expects TLS on this port: set %s, or use its port without TLS", s.Name, s.Switch), Err: err}
	case record:
		return &Refusal{Sentence: fmt.Sprintf("%s does not speak TLS on this port: use its TLS port, or turn %s off", s.Name, s.Switch), Err: err}
	case (refused || gone) && over:
		return &Refusal{Sentence: fmt.Sprintf("our certificate in %s (%s) expired on %s: put a new one there", s.TLS.CertFile, s.Cert, day(since)), Err: err}
	case refused && s.TLS.CertFile == "":
		return &Refusal{Sentence: fmt.Sprintf("%s ends the handshake, as it does when it wants a client certificate: name one in %s", s.Name, s.Cert), Err: err}
	case refused:
		return &Refusal{Sentence: fmt.Sprintf("%s does not take our certificate in %s (%s): it must be signed by an authority that the server trusts", s.Name, s.TLS.CertFile, s.Cert), Err: err}
	case gone && s.TLS.Enabled:
		return &Refusal{fmt.Sprintf("%s closes each new connection: this may be a port without TLS (%s), or it may want a client certificate (%s) or a login", s.Name, s.Switch, s.Cert), true, err}
	case gone:
		return &Refusal{fmt.Sprintf("%s closes each new connection: this may be a port with TLS (%s), or it may want a login", s.Name, s.Switch), true, err}
	}
	return err
}

// isAlert reports whether the other side ended the handshake with a TLS alert;
// crypto/tls gives such an error this operation and no type of its own.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}
