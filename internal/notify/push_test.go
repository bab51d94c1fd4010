package notify_test

import (
	"context"
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
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/notify"
)

// browser is a push service and the browser behind it, which decrypts as RFC 8291 says.
type browser struct {
	testing.TB
	*httptest.Server
	key    *ecdh.PrivateKey
	auth   []byte
	status int
	got    []byte
	header http.Header
}

func newBrowser(t testing.TB) *browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{TB: t, key: key, auth: []byte("sixteen bytes ok"), status: http.StatusCreated}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.header = r.Header.Clone()
		b.got, _ = io.ReadAll(r.Body)
		w.WriteHeader(b.status)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *browser) device() domain.PushDevice {
	encode := base64.RawURLEncoding.EncodeToString
	return domain.PushDevice{
		Endpoint: b.URL + "/secret", P256dh: encode(b.key.PublicKey().Bytes()), Auth: encode(b.auth),
	}
}

// read decrypts what came: sections 3.3 and 3.4 of RFC 8291 over RFC 8188.
func (b *browser) read() (message map[string]string) {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	salt, size := b.got[:16], binary.BigEndian.Uint32(b.got[16:20])
	length := int(b.got[20])
	sender, record := b.got[21:21+length], b.got[21+length:]
	if len(b.got) > 4096 || len(record) > int(size) {
		b.Errorf("the body has %d bytes in records of %d", len(b.got), size)
	}
	public, err := ecdh.P256().NewPublicKey(sender)
	must(err)
	shared, err := b.key.ECDH(public)
	must(err)
	ikm, err := hkdf.Key(sha256.New, shared, b.auth,
		"WebPush: info\x00"+string(b.key.PublicKey().Bytes())+string(sender), 32)
	must(err)
	key, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: aes128gcm\x00", 16)
	must(err)
	nonce, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: nonce\x00", 12)
	must(err)
	block, err := aes.NewCipher(key)
	must(err)
	gcm, err := cipher.NewGCM(block)
	must(err)
	text, err := gcm.Open(nil, nonce, record, nil)
	must(err)
	must(json.Unmarshal([]byte(strings.TrimRight(string(text), "\x00\x02")), &message))
	return message
}

// signer checks the VAPID token (RFC 8292) and returns its audience.
func (b *browser) audience(public string) string {
	b.Helper()
	var token, key string
	for part := range strings.SplitSeq(strings.TrimPrefix(b.header.Get("Authorization"), "vapid "), ", ") {
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
		b.Fatalf("Authorization: %s", b.header.Get("Authorization"))
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
	return claims.Aud
}

func pushing(t testing.TB) (*notify.Sender, string) {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	keys := domain.PushKeys{Public: encode(key.PublicKey().Bytes()), Private: domain.Secret(encode(key.Bytes()))}
	return notify.New(notify.Options{Guard: notify.Guard{Loopback: true}, Push: notify.Push{
		Keys: func(context.Context) (domain.PushKeys, error) { return keys, nil },
	}}), keys.Public
}

func TestABrowserReadsWhatIsPushedToIt(t *testing.T) {
	b := newBrowser(t)
	sender, public := pushing(t)
	target := domain.Target{URL: b.device().Address()}
	if _, err := sender.Check(t.Context(), target.URL); err != nil {
		t.Fatal(err)
	}
	m := domain.Message{
		ID: "id", Title: "Blocked: Pay by card", Text: strings.Repeat("waiting \U0001f511 ", 1000), Link: "https://yard.example/x",
		Signal: domain.SignalStop,
	}
	if sent := sender.Send(t.Context(), target, m); sent.Err != nil || sent.Status != http.StatusCreated {
		t.Fatalf("%+v", sent)
	}
	got := b.read()
	if got["title"] != m.Title || !strings.HasPrefix(got["body"], "waiting \U0001f511") || got["link"] != m.Link || got["tag"] != "id" {
		t.Errorf("%v", got)
	}
	if audience := b.audience(public); audience != b.URL {
		t.Errorf("aud: %s", audience)
	}
	if b.header.Get("Content-Encoding") != "aes128gcm" || b.header.Get("Urgency") != "high" || b.header.Get("Ttl") == "" {
		t.Errorf("%v", b.header)
	}
	if shown := sender.Shown(target.URL); shown != "webpush://"+strings.TrimPrefix(b.URL, "http://")+"/…" {
		t.Errorf("shown as %s", shown)
	}
}

func TestTheLongestMessageFitsIntoAPush(t *testing.T) {
	b := newBrowser(t)
	sender, _ := pushing(t)
	m := domain.Message{
		ID: strings.Repeat("i", 100), Title: strings.Repeat("\x01", 5000), Text: strings.Repeat("<", 5000),
		Link: "https://yard.example/" + strings.Repeat("x", 4000),
	}
	if sent := sender.Send(t.Context(), domain.Target{URL: b.device().Address()}, m); sent.Err != nil {
		t.Fatal(sent.Err)
	}
	if got := b.read(); got["title"] == "" || got["link"] != "" {
		t.Errorf("%v", got)
	}
}

func TestASubscriptionThatIsOverIsGone(t *testing.T) {
	b := newBrowser(t)
	sender, _ := pushing(t)
	target := domain.Target{URL: b.device().Address()}
	for status, gone := range map[int]bool{404: true, 410: true, 500: false, 302: false} {
		b.status = status
		if sent := sender.Send(t.Context(), target, domain.Message{}); sent.Err == nil || sent.Gone() != gone {
			t.Errorf("%d: %+v", status, sent)
		}
	}
}

func TestSubscriptionsAreChecked(t *testing.T) {
	b := newBrowser(t)
	sender, _ := pushing(t)
	for name, change := range map[string]func(d *domain.PushDevice){
		"endpoint": func(d *domain.PushDevice) { d.Endpoint = "ftp://push.example/" },
		"local":    func(d *domain.PushDevice) { d.Endpoint = "http://169.254.169.254/" },
		"point":    func(d *domain.PushDevice) { d.P256dh = "BAAA" },
		"auth":     func(d *domain.PushDevice) { d.Auth = "AAAA" },
	} {
		d := b.device()
		change(&d)
		if _, err := sender.Check(t.Context(), d.Address()); domain.CodeOf(err) != domain.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
