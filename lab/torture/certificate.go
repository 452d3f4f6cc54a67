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

	"github.com/lullgo/lull/internal/must"
)

// An authority signs the certificates of the cases. Clients are given its own certificate.
type authority struct {
	pem  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority() *authority {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lull torture"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, key := (*authority)(nil).sign(template)
	return &authority{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), must.Have(x509.ParseCertificate(der)), key}
}

// sign makes a key and its certificate. That of a nil authority is signed by itself.
func (a *authority) sign(template *x509.Certificate) (der []byte, key *ecdsa.PrivateKey) {
	key = must.Have(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	if a == nil {
		a = &authority{cert: template, key: key}
	}
	return must.Have(x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)), key
}

func (a *authority) leaf(d door) tls.Certificate {
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
	der, key := a.sign(template)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
