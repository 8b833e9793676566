package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"dedupledger/internal/devservices/pki"
	"dedupledger/internal/setting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a folder with an authority's certificate and a client's.
type place struct {
	dir       string
	authority *pki.Authority
	tls       TLS
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{dir: t.TempDir()}
	var err error
	p.authority, err = pki.NewAuthority("ours")
	require.NoError(t, err)
	p.tls = TLS{Enabled: true, CAFile: filepath.Join(p.dir, "ca.crt")}
	require.NoError(t, pki.WriteFile(p.tls.CAFile, p.authority.PEM))
	p.client(t, pki.Leaf{Name: "client"})
	return p
}

func (p *place) client(t *testing.T, l pki.Leaf) {
	t.Helper()
	pair, err := p.authority.Issue(l)
	require.NoError(t, err)
	p.tls.CertFile, p.tls.KeyFile, err = pair.Write(p.dir, "client")
	require.NoError(t, err)
}

// serve takes connections with a certificate; clients' are demanded where an
// authority for them is given. Each is sent one byte.
func serve(t *testing.T, a *pki.Authority, l pki.Leaf, clients *pki.Authority) (addr string) {
	t.Helper()
	pair, err := a.Issue(l)
	require.NoError(t, err)
	cert, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	require.NoError(t, err)
	c := &tls.Config{Certificates: []tls.Certificate{cert}}
	if clients != nil {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		require.True(t, c.ClientCAs.AppendCertsFromPEM(clients.PEM))
	}
	return listen(t, func(conn net.Conn) {
		if _, err := tls.Server(conn, c).Write([]byte{1}); err == nil {
			_, _ = io.Copy(io.Discard, conn)
		}
	})
}

func listen(t *testing.T, handle func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			handle(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// connect dials and reads one byte: with TLS 1.3 a client learns only then that
// its certificate is not taken.
func connect(ctx context.Context, s TLS, addr string) error {
	conn, err := s.Dial(ctx, new(net.Dialer), "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	return err
}

func kafka(s TLS) Service {
	return Service{Name: "Kafka", TLS: s, Switch: "kafka.tls.enabled", CA: "kafka.tls.ca_file", Cert: "kafka.tls.cert_file", ServerName: "kafka.tls.server_name"}
}

// TestRefusals: every way to be refused has its sentence, with the repair, and
// says whether waiting helps.
func TestRefusals(t *testing.T) {
	t.Parallel()
	loopback := pki.Leaf{Name: "server", Hosts: []string{"127.0.0.1"}}
	plain := func(t *testing.T) string {
		return listen(t, func(c net.Conn) { _, _ = c.Write([]byte("-ERR hello\r\n")) })
	}
	closing := func(t *testing.T) string { return listen(t, func(net.Conn) {}) }
	for _, c := range []struct {
		name  string
		at    func(t *testing.T, p *place) string
		want  string
		mends bool
	}{
		{"unknown authority", func(t *testing.T, _ *place) string {
			other, err := pki.NewAuthority("other")
			require.NoError(t, err)
			return serve(t, other, loopback, nil)
		}, "Kafka's certificate is signed by no authority in .*ca.crt: put the certificate of its authority into kafka.tls.ca_file", false},
		{"unknown to the system", func(t *testing.T, p *place) string {
			p.tls.CAFile = ""
			return serve(t, p.authority, loopback, nil)
		}, "Kafka's certificate is signed by no authority of this system: name .* in kafka.tls.ca_file", false},
		{"expired", func(t *testing.T, p *place) string {
			return serve(t, p.authority, pki.Leaf{Name: "server", Hosts: loopback.Hosts, Expired: true}, nil)
		}, "Kafka's certificate is valid from .* to .* only: give the server a new one", false},
		{"another name", func(t *testing.T, p *place) string {
			return serve(t, p.authority, pki.Leaf{Name: "server", Hosts: []string{"kafka.example"}}, nil)
		}, "Kafka's certificate is for kafka.example and not for 127.0.0.1: .* or set kafka.tls.server_name", false},
		{"no client certificate", func(t *testing.T, p *place) string {
			p.tls.CertFile, p.tls.KeyFile = "", ""
			return serve(t, p.authority, loopback, p.authority)
		}, "Kafka ends the handshake, .*: name one in kafka.tls.cert_file", false},
		{"client of another authority", func(t *testing.T, p *place) string {
			other, err := pki.NewAuthority("other")
			require.NoError(t, err)
			return serve(t, p.authority, loopback, other)
		}, "Kafka does not take our certificate in .*client.crt .*: it must be signed by", false},
		{"our own is expired", func(t *testing.T, p *place) string {
			p.client(t, pki.Leaf{Name: "client", Expired: true})
			return serve(t, p.authority, loopback, p.authority)
		}, "our certificate in .*client.crt .* expired on .*: put a new one there", false},
		{"a port without TLS", func(t *testing.T, _ *place) string { return plain(t) }, "Kafka does not speak TLS on this port: .*kafka.tls.enabled off", false},
		{"a port that closes", func(t *testing.T, _ *place) string { return closing(t) }, "Kafka closes each new connection: .* port without TLS", true},
		{"without TLS", func(t *testing.T, p *place) string {
			p.tls.Enabled = false
			return closing(t)
		}, "Kafka closes each new connection: .* port with TLS", true},
		{"half a file", func(t *testing.T, p *place) string {
			require.NoError(t, os.WriteFile(p.tls.CAFile, p.authority.PEM[:len(p.authority.PEM)/2], 0o600))
			return serve(t, p.authority, loopback, nil)
		}, "a file for connections to Kafka cannot be used, .*CA file .*ca.crt: holds no certificate", true},
		{"no file", func(t *testing.T, p *place) string {
			require.NoError(t, os.Remove(p.tls.KeyFile))
			return serve(t, p.authority, loopback, nil)
		}, "a file for connections to Kafka cannot be used, .*key file .*client.key: no such file", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			addr := c.at(t, p)
			err := kafka(p.tls).Explain(connect(t.Context(), p.tls, addr))
			var r *Refusal
			require.ErrorAs(t, err, &r)
			require.Regexp(t, c.want, err.Error())
			require.Equal(t, c.mends, r.Mends)
			require.Same(t, err, kafka(p.tls).Explain(err), "it is explained once")
		})
	}
	require.NoError(t, kafka(TLS{}).Explain(nil))
	other := errors.New("other")
	require.Equal(t, other, kafka(TLS{}).Explain(other))
}

// TestFilesAreReadForEachConnection: a certificate, an authority and a name that
// are replaced count for the next connection.
func TestFilesAreReadForEachConnection(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	next, err := pki.NewAuthority("next")
	require.NoError(t, err)
	addr := serve(t, next, pki.Leaf{Name: "server", Hosts: []string{"kafka.example"}}, next)
	p.tls.ServerName = "kafka.example"
	require.ErrorAs(t, connect(t.Context(), p.tls, addr), new(x509.UnknownAuthorityError))
	require.NoError(t, pki.WriteFile(p.tls.CAFile, append(append([]byte{}, p.authority.PEM...), next.PEM...)))
	require.Error(t, connect(t.Context(), p.tls, addr), "our certificate is the old one")
	p.authority = next
	p.client(t, pki.Leaf{Name: "client"})
	require.NoError(t, connect(t.Context(), p.tls, addr))
}

// TestRetried: what is under rotation is no final error for the clients.
func TestRetried(t *testing.T) {
	t.Parallel()
	for _, err := range []error{&FileError{"CA file", "x", errEmpty}, &HandshakeError{"x", errEmpty}} {
		var temporary interface{ Temporary() bool }
		require.ErrorAs(t, fmt.Errorf("dialling: %w", err), &temporary)
		require.True(t, temporary.Temporary())
	}
}

func TestPassword(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	p := Password{File: file}
	for text, want := range map[string]string{"one\n": "one", "two\r\n": "two", "a b": "a b"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		got, err := p.Reveal()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "\n", string(make([]byte, maxPassword+1))} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := p.Read()
		var bad *FileError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, file, bad.File)
	}
	inline, err := Password{Inline: setting.NewSecret("geheim")}.Reveal()
	require.NoError(t, err)
	require.Equal(t, "geheim", inline)
	none, err := Password{}.Read()
	require.NoError(t, err)
	require.True(t, none.Empty())
}

func TestPostgresTLS(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]TLS{
		"postgres://u@h/d":                 {Enabled: true},
		"postgres://u@h/d?sslmode=disable": {},
		"postgres://u@h/d?sslmode=verify-full&sslrootcert=/ca&sslcert=/c&sslkey=/k":        {Enabled: true, CAFile: "/ca", CertFile: "/c", KeyFile: "/k"},
		"postgres://u@h/d?sslmode=verify-full&sslrootcert=system&target_session_attrs=any": {Enabled: true},
	} {
		got, err := PostgresTLS(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := PostgresTLS("postgres://u:geheim@[h")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "geheim")
}
