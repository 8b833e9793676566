package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIssue(t *testing.T) {
	t.Parallel()
	ours, err := NewAuthority("ours")
	require.NoError(t, err)
	other, err := NewAuthority("other")
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		leaf  Leaf
		roots []byte
		host  string
		want  any
	}{
		{"right", Leaf{Name: "s", Hosts: []string{"db.example", "127.0.0.1"}}, ours.PEM, "db.example", nil},
		{"by address", Leaf{Name: "s", Hosts: []string{"db.example", "127.0.0.1"}}, ours.PEM, "127.0.0.1", nil},
		{"other host", Leaf{Name: "s", Hosts: []string{"db.example"}}, ours.PEM, "127.0.0.1", new(x509.HostnameError)},
		{"other authority", Leaf{Name: "s", Hosts: []string{"db.example"}}, other.PEM, "db.example", new(x509.UnknownAuthorityError)},
		{"expired", Leaf{Name: "s", Hosts: []string{"db.example"}, Expired: true}, ours.PEM, "db.example", new(x509.CertificateInvalidError)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pair, err := ours.Issue(c.leaf)
			require.NoError(t, err)
			certFile, keyFile, err := pair.Write(t.TempDir(), "leaf")
			require.NoError(t, err)
			_, err = tls.LoadX509KeyPair(certFile, keyFile)
			require.NoError(t, err)
			block, _ := pem.Decode(pair.Certificate)
			cert, err := x509.ParseCertificate(block.Bytes)
			require.NoError(t, err)
			roots := x509.NewCertPool()
			require.True(t, roots.AppendCertsFromPEM(c.roots))
			_, err = cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: c.host})
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorAs(t, err, c.want)
		})
	}
}
