package handlers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/gorilla/securecookie"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

// sessionSeconds is how long a session lasts: a week, after which the admin token is asked for again.
const sessionSeconds = 7 * 24 * 60 * 60

// sessions tells those who have given the admin token by a cookie that is signed and encrypted. The server keeps nothing:
// a session ends by its age, or with all others when the admin token or the key changes.
type sessions struct {
	codec *securecookie.SecureCookie
	// name is the cookie's. Cookies cross ports, so it tells gateways on one host apart.
	name string
}

func newSessions(key []byte, adminToken domain.Secret) sessions {
	derive := func(purpose string) []byte {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(purpose))
		return mac.Sum(nil)
	}
	codec := securecookie.New(derive("sign "+adminToken.Reveal()), derive("encrypt "+adminToken.Reveal()))
	codec.SetSerializer(securecookie.JSONEncoder{})
	codec.MaxAge(sessionSeconds)
	return sessions{codec, "switchyard_" + hex.EncodeToString(derive("instance")[:6])}
}

// secureName is the cookie's name where it came by https: no other host, and nothing that came by http, can set it.
func (s sessions) secureName() string { return "__Host-" + s.name }

// begin gives the browser a session.
func (s sessions) begin(w http.ResponseWriter, r *http.Request) error {
	value, err := s.codec.Encode(s.name, struct{}{})
	if err != nil {
		return err
	}
	http.SetCookie(w, s.cookie(web.CameByHTTPS(r), value, sessionSeconds))
	return nil
}

// end takes the session from the browser.
func (s sessions) end(w http.ResponseWriter) {
	http.SetCookie(w, s.cookie(false, "", -1))
	http.SetCookie(w, s.cookie(true, "", -1))
}

func (s sessions) cookie(secure bool, value string, maxAge int) *http.Cookie {
	c := &http.Cookie{Name: s.name, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if secure {
		c.Name, c.Secure = s.secureName(), true
	}
	return c
}

// has reports whether the request carries a session.
func (s sessions) has(r *http.Request) bool {
	for _, name := range []string{s.name, s.secureName()} {
		for _, cookie := range r.CookiesNamed(name) {
			var nothing struct{}
			if s.codec.Decode(s.name, cookie.Value, &nothing) == nil {
				return true
			}
		}
	}
	return false
}
