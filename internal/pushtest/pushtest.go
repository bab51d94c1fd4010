// Package pushtest is a push service for tests, with the browser behind it.
package pushtest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"switchyard/internal/domain"
)

// Browser is a push service and the browser behind it.
type Browser struct {
	testing.TB
	url  string
	key  *ecdh.PrivateKey
	auth []byte

	mu     sync.Mutex
	status int
	got    []byte
	header http.Header
}

// New returns a push service that accepts everything.
func New(t testing.TB) *Browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{TB: t, key: key, auth: []byte("sixteen bytes ok"), status: http.StatusCreated}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.header = r.Header.Clone()
		b.got, _ = io.ReadAll(r.Body)
		w.WriteHeader(b.status)
	}))
	b.url = server.URL
	t.Cleanup(server.Close)
	return b
}

// URL returns the push service's address.
func (b *Browser) URL() string { return b.url }

// Answer makes the push service answer with a status.
func (b *Browser) Answer(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = status
}

// Device is the browser's subscription.
func (b *Browser) Device() domain.PushDevice {
	encode := base64.RawURLEncoding.EncodeToString
	return domain.PushDevice{
		Endpoint: b.url + "/secret", P256dh: encode(b.key.PublicKey().Bytes()), Auth: encode(b.auth),
	}
}

// Header returns the header of the last request.
func (b *Browser) Header() http.Header {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.header
}

// Got reports whether anything has been pushed.
func (b *Browser) Got() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got != nil
}

// Text decrypts what was pushed last.
func (b *Browser) Text() string {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.got) > 4096 {
		b.Errorf("the body has %d bytes", len(b.got))
	}
	text, err := Decrypt(b.key, b.auth, b.got)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// Read decrypts and decodes what was pushed last.
func (b *Browser) Read() (message map[string]string) {
	b.Helper()
	if err := json.Unmarshal([]byte(b.Text()), &message); err != nil {
		b.Fatal(err)
	}
	return message
}

// Decrypt decrypts a message of one record: sections 3.3 and 3.4 of RFC 8291 over RFC 8188.
func Decrypt(key *ecdh.PrivateKey, auth, body []byte) (string, error) {
	if len(body) < 21 || len(body) < 21+int(body[20]) {
		return "", errors.New("the header is too short")
	}
	salt, size, length := body[:16], binary.BigEndian.Uint32(body[16:20]), int(body[20])
	sender, record := body[21:21+length], body[21+length:]
	if len(record) > int(size) {
		return "", errors.New("there is more than one record")
	}
	public, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		return "", err
	}
	shared, err := key.ECDH(public)
	if err != nil {
		return "", err
	}
	info := "WebPush: info\x00" + string(key.PublicKey().Bytes()) + string(sender)
	ikm, err := hkdf.Key(sha256.New, shared, auth, info, 32)
	if err != nil {
		return "", err
	}
	secret, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return "", err
	}
	nonce, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return "", err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return "", err
	}
	text, err := gcm.Open(nil, nonce, record, nil)
	return strings.TrimRight(string(text), "\x00\x02"), err
}

// Claims returns for whom the token of the last request is and who sends it. It fails unless the token is signed by the
// key public.
func (b *Browser) Claims(public string) (audience, subject string) {
	b.Helper()
	var token, key string
	for part := range strings.SplitSeq(strings.TrimPrefix(b.Header().Get("Authorization"), "vapid "), ", ") {
		name, value, _ := strings.Cut(part, "=")
		if name == "t" {
			token = value
		} else {
			key = value
		}
	}
	decode := func(text string) []byte {
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			b.Fatal(err)
		}
		return raw
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 || key != public {
		b.Fatalf("Authorization: %s", b.Header().Get("Authorization"))
	}
	point, signature := decode(key), decode(parts[2])
	verifier, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		b.Fatal(err)
	}
	hash := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if !ecdsa.Verify(verifier, hash[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		b.Error("the token is not signed by the key")
	}
	var claims struct{ Aud, Sub string }
	if err := json.Unmarshal(decode(parts[1]), &claims); err != nil {
		b.Fatal(err)
	}
	return claims.Aud, claims.Sub
}
