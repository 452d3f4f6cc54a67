package torture

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// An authority signs the certificates of the cases. Clients are given its own certificate.
type authority struct {
	pem  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority() (*authority, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lull torture"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, key, err := (*authority)(nil).sign(template)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), cert, key}, err
}

// sign makes a key and its certificate. That of a nil authority is signed by itself.
func (a *authority) sign(template *x509.Certificate) (der []byte, key *ecdsa.PrivateKey, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	if a == nil {
		a = &authority{cert: template, key: key}
	}
	der, err = x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	return der, key, err
}

func (a *authority) leaf(d door) (tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: time.Now().Add(-36 * time.Hour), NotAfter: time.Now().Add(36 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	switch d {
	case doorWrong:
		template.DNSNames, template.IPAddresses = []string{"elsewhere.example"}, nil
	case doorExpired:
		template.NotAfter = time.Now().Add(-24 * time.Hour)
	case doorUnknown:
		a = nil
	}
	der, key, err := a.sign(template)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
