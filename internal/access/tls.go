package access

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"time"
)

const (
	// mostPEM bounds what is read of a file of certificates, in bytes: a bundle
	// of all public authorities is a quarter of it.
	mostPEM = 1 << 20
	// HandshakeTimeout bounds a handshake with a server that takes connections
	// and says nothing.
	HandshakeTimeout = 10 * time.Second
)

// TLS is how connections to a service are secured. Files hold PEM and are read
// for each connection.
type TLS struct {
	Enabled    bool
	CAFile     string // of who signed the server's certificate; "" is the system's authorities
	CertFile   string // our certificate with its chain; "" is none
	KeyFile    string // its key
	ServerName string // the name in the server's certificate; "" is the host that is dialled
}

// Config reads the files as they are now. host is who is dialled. Errors of
// files are *FileError.
func (t TLS) Config(host string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if t.ServerName != "" {
		c.ServerName = t.ServerName
	}
	if t.CAFile != "" {
		roots, err := readRoots(t.CAFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = roots
	}
	if t.CertFile != "" {
		pair, err := readPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// CheckCA reads the CA file without connecting.
func (t TLS) CheckCA() error {
	if t.CAFile == "" {
		return nil
	}
	_, err := readRoots(t.CAFile)
	return err
}

// CheckPair reads certificate and key.
func (t TLS) CheckPair() error {
	if t.CertFile == "" || t.KeyFile == "" {
		return nil
	}
	_, err := readPair(t.CertFile, t.KeyFile)
	return err
}

// Check reads all files.
func (t TLS) Check() error {
	if err := t.CheckCA(); err != nil {
		return err
	}
	return t.CheckPair()
}

func readRoots(file string) (*x509.CertPool, error) {
	const what = "CA file"
	text, err := readFile(what, file, mostPEM)
	if err != nil {
		return nil, err
	}
	roots, found := x509.NewCertPool(), false
	// AppendCertsFromPEM passes over what it cannot read; of a bundle that is
	// half written it would take the first half.
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, &FileError{what, file, err}
		}
		roots.AddCert(cert)
		found = true
	}
	if !found {
		return nil, &FileError{what, file, errNoCerts}
	}
	return roots, nil
}

func readPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := readFile("certificate file", certFile, mostPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readFile("key file", keyFile, mostPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	if block, _ := pem.Decode(cert); block == nil {
		return tls.Certificate{}, &FileError{"certificate file", certFile, errNoCerts}
	}
	if block, _ := pem.Decode(key); block == nil || !bytes.HasSuffix([]byte(block.Type), []byte("PRIVATE KEY")) {
		return tls.Certificate{}, &FileError{"key file", keyFile, errNoKey}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return pair, &FileError{"certificate file", certFile, fmt.Errorf("with key file %s: %w", keyFile, err)}
	}
	return pair, nil
}

// Expired reports whether our own certificate's time is over, and since when.
func (t TLS) Expired(now time.Time) (since time.Time, over bool) {
	if t.CertFile == "" {
		return since, false
	}
	pair, err := readPair(t.CertFile, t.KeyFile)
	if err != nil || pair.Leaf == nil {
		return since, false
	}
	return pair.Leaf.NotAfter, now.After(pair.Leaf.NotAfter)
}

// Dial makes a connection; with TLS the handshake is part of it.
func (t TLS) Dial(ctx context.Context, d *net.Dialer, network, addr string) (net.Conn, error) {
	if !t.Enabled {
		return d.DialContext(ctx, network, addr) //nolint:wrapcheck // clients look into net.OpError
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("dialling %s: %w", addr, err)
	}
	config, err := t.Config(host)
	if err != nil {
		return nil, err
	}
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err //nolint:wrapcheck // likewise
	}
	ctx, cancel := context.WithTimeout(ctx, HandshakeTimeout)
	defer cancel()
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the error that counts is the first
		return nil, &HandshakeError{addr, err}
	}
	return secure, nil
}

// HandshakeError is a handshake that failed.
type HandshakeError struct {
	Addr string
	Err  error
}

func (e *HandshakeError) Error() string { return fmt.Sprintf("TLS with %s: %v", e.Addr, e.Err) }
func (e *HandshakeError) Unwrap() error { return e.Err }

// Temporary tells clients that another try may find other certificates: on
// either side they may be under rotation.
func (e *HandshakeError) Temporary() bool { return true }

// PostgresTLS is what a postgres:// URL says of TLS (sslrootcert, sslcert,
// sslkey). Only its files are used: the driver reads the URL itself.
func PostgresTLS(text string) (TLS, error) {
	u, err := url.Parse(text)
	if err != nil {
		return TLS{}, fmt.Errorf("no URL") // not the parser's error: it repeats the URL, and with it a password
	}
	q := u.Query()
	t := TLS{
		Enabled: q.Get("sslmode") != "disable",
		CAFile:  q.Get("sslrootcert"), CertFile: q.Get("sslcert"), KeyFile: q.Get("sslkey"),
	}
	if t.CAFile == "system" {
		t.CAFile = ""
	}
	return t, nil
}
