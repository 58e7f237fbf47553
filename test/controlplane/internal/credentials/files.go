package credentials

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Write writes the pair to name.crt and name.key in directory. It writes the key first, so
// that a readable certificate has its key.
func (p KeyPair) Write(directory, name string) error {
	if err := WriteFile(keyFile(directory, name), p.Key); err != nil {
		return err
	}
	return WriteFile(certFile(directory, name), p.Cert)
}

// EnsureSigningKey returns the file of the private key name in directory, and creates the
// key if there is none.
func EnsureSigningKey(directory, name string) (string, error) {
	file := keyFile(directory, name)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("generate key %s: %w", name, err)
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return "", fmt.Errorf("encode key %s: %w", name, err)
	}
	return file, WriteFile(file, text)
}

// WriteFile writes content to path, readable by the owner only. Readers see
// the old content or the new, never a part.
func WriteFile(path string, content []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write file %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write file %s: %w", path, errors.Join(err, os.Remove(file.Name())))
		}
	}()
	if _, err := file.Write(content); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// encode returns a certificate and its key in PEM.
func encode(certificate []byte, key crypto.Signer) (KeyPair, error) {
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode private key: %w", err)
	}
	return KeyPair{Cert: encodeCertificate(certificate), Key: text}, nil
}

// encodeCertificate returns a certificate in PEM.
func encodeCertificate(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: raw})
}
