package handlers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/gorilla/securecookie"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
)

// sessions manages the signed and encrypted cookies that hold the id of a session. A session ends by logging out, by
// its age, or with all others when the admin token or the key changes.
type sessions struct {
	access *service.Access
	codec  *securecookie.SecureCookie
	// name is the cookie's name. Cookies are shared between ports, so it differs between gateways on one host.
	name string
}

type cookieValue struct {
	ID string `json:"id"`
}

func newSessions(a *service.Access, key []byte, adminToken domain.Secret) sessions {
	derive := deriveFrom(key)
	codec := securecookie.New(derive("sign "+adminToken.Reveal()), derive("encrypt "+adminToken.Reveal()))
	codec.SetSerializer(securecookie.JSONEncoder{})
	codec.MaxAge(0) // the session's age is stored; the clock of the gateway that made the cookie may differ
	return sessions{a, codec, cookieName(derive)}
}

func deriveFrom(key []byte) func(purpose string) []byte {
	return func(purpose string) []byte {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(purpose))
		return mac.Sum(nil)
	}
}

func cookieName(derive func(string) []byte) string {
	return "switchyard_" + hex.EncodeToString(derive("instance")[:6])
}

// secureName returns the name of a cookie over HTTPS, which no other host and nothing over plain HTTP can set.
func secureName(name string) string { return "__Host-" + name }

// begin begins a session for a user who has just logged in from an address, and sets its cookie.
func (s sessions) begin(w http.ResponseWriter, r *http.Request, who service.Identity, from string) error {
	session, err := s.access.BeginSession(r.Context(), who.Actor, who.TokenID, from)
	if err != nil {
		return err
	}
	value, err := s.codec.Encode(s.name, cookieValue{session.ID})
	if err != nil {
		return err
	}
	http.SetCookie(w, sessionCookie(s.name, web.IsHTTPS(r), value, int(service.SessionTime/time.Second)))
	return nil
}

func (s sessions) end(w http.ResponseWriter, r *http.Request) error {
	for _, id := range s.ids(r) {
		if err := s.access.EndSession(r.Context(), id); err != nil && domain.CodeOf(err) != domain.NotFound {
			return err
		}
	}
	http.SetCookie(w, sessionCookie(s.name, false, "", -1))
	http.SetCookie(w, sessionCookie(s.name, true, "", -1))
	return nil
}

// sessionCookie returns a cookie that scripts cannot read and that requests from other sites carry only when people
// follow a link.
func sessionCookie(name string, secure bool, value string, maxAge int) *http.Cookie {
	c := &http.Cookie{
		Name: name, Value: value, MaxAge: maxAge, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
	if secure {
		c.Name, c.Secure = secureName(name), true
	}
	return c
}

// identity returns whose session the request carries, nil if none.
func (s sessions) identity(r *http.Request) *service.Identity {
	for _, id := range s.ids(r) {
		if who := s.access.Session(r.Context(), id); who != nil {
			return who
		}
	}
	return nil
}

// ids returns the ids of the sessions whose cookies the request carries, including ended ones.
func (s sessions) ids(r *http.Request) (ids []string) {
	for _, name := range []string{s.name, secureName(s.name)} {
		for _, cookie := range r.CookiesNamed(name) {
			var value cookieValue
			if s.codec.Decode(s.name, cookie.Value, &value) == nil {
				ids = append(ids, value.ID)
			}
		}
	}
	return ids
}
