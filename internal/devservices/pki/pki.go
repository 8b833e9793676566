// Package pki makes certificates for tests: an authority of its own, what it
// signs for servers and for clients, and what it should not have signed.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority signs certificates.
type Authority struct {
	// PEM is its own certificate, as a ca_file holds it.
	PEM  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair is a certificate and its key (PKCS #8), both PEM.
type Pair struct {
	Certificate, Key []byte
}

// Leaf is what a certificate says.
type Leaf struct {
	Name  string   // common name: the user, of a client
	Hosts []string // host names and IP addresses, of a server
	// Expired makes one whose time is over since an hour.
	Expired bool
}

const (
	// early lets a machine whose clock is behind trust what was made just now.
	early = time.Hour
	valid = 24 * time.Hour
)

// NewAuthority makes an authority that nobody else trusts.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of authority %s: %w", name, err)
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-early), NotAfter: now.Add(valid),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("making authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading authority %s: %w", name, err)
	}
	return &Authority{PEM: certificatePEM(der), cert: cert, key: key}, nil
}

// Issue signs a certificate for a server, a client or both.
func (a *Authority) Issue(l Leaf) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making the key of %s: %w", l.Name, err)
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: l.Name}, NotBefore: now.Add(-2 * early), NotAfter: now.Add(valid),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if l.Expired {
		template.NotAfter = now.Add(-early)
	}
	for _, h := range l.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := sign(template, a.cert, key, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing the certificate of %s: %w", l.Name, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("writing the key of %s: %w", l.Name, err)
	}
	return Pair{
		Certificate: certificatePEM(der),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("creating a certificate: %w", err)
	}
	return der, nil
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Write puts the pair into two files of a folder, NAME.crt and NAME.key, each
// replaced as a whole: whoever reads meanwhile finds the old or the new one.
func (p Pair) Write(folder, name string) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key")
	if err := WriteFile(certFile, p.Certificate); err != nil {
		return "", "", err
	}
	return certFile, keyFile, WriteFile(keyFile, p.Key)
}

// WriteFile replaces a file as a whole, readable for its owner alone, as
// Kubernetes and other issuers of secrets do.
func WriteFile(file string, content []byte) error {
	next := file + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if err := os.Rename(next, file); err != nil {
		return fmt.Errorf("replacing %s: %w", file, err)
	}
	return nil
}
