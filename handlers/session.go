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

// sessions gives browsers cookies, signed and encrypted, that hold the id of a session. A session ends by logging out, by
// its age, or with all others when the admin token or the key changes.
type sessions struct {
	access *service.Access
	codec  *securecookie.SecureCookie
	// name is the cookie's. Cookies cross ports, so it tells gateways on one host apart.
	name string
}

// cookieValue is what a cookie holds.
type cookieValue struct {
	ID string `json:"id"`
}

func newSessions(a *service.Access, key []byte, adminToken domain.Secret) sessions {
	derive := deriveFrom(key)
	codec := securecookie.New(derive("sign "+adminToken.Reveal()), derive("encrypt "+adminToken.Reveal()))
	codec.SetSerializer(securecookie.JSONEncoder{})
	codec.MaxAge(0) // the session knows how old it is; the gateway that made the cookie may have had another clock
	return sessions{a, codec, cookieName(derive)}
}

// deriveFrom makes keys for many purposes out of one.
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

// secureName is a cookie's name where it came by https: no other host, and nothing that came by http, can set it.
func secureName(name string) string { return "__Host-" + name }

// begin gives the browser a session of whoever has just logged in.
func (s sessions) begin(w http.ResponseWriter, r *http.Request, who service.Identity) error {
	session, err := s.access.BeginSession(r.Context(), who.Actor, who.TokenID)
	if err != nil {
		return err
	}
	value, err := s.codec.Encode(s.name, cookieValue{session.ID})
	if err != nil {
		return err
	}
	http.SetCookie(w, s.cookie(web.CameByHTTPS(r), value, int(service.SessionTime/time.Second)))
	return nil
}

// end ends the session that the request carries, and takes its cookie from the browser.
func (s sessions) end(w http.ResponseWriter, r *http.Request) error {
	for _, id := range s.ids(r) {
		if err := s.access.EndSession(r.Context(), id); err != nil && domain.CodeOf(err) != domain.NotFound {
			return err
		}
	}
	http.SetCookie(w, s.cookie(false, "", -1))
	http.SetCookie(w, s.cookie(true, "", -1))
	return nil
}

func (s sessions) cookie(secure bool, value string, maxAge int) *http.Cookie {
	c := sessionCookie(s.name, secure)
	c.Value, c.MaxAge = value, maxAge
	return c
}

// sessionCookie is a cookie that no script and no request from another site gets, but for people who come from there.
func sessionCookie(name string, secure bool) *http.Cookie {
	c := &http.Cookie{Name: name, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if secure {
		c.Name, c.Secure = secureName(name), true
	}
	return c
}

// identity returns whose session the request carries, false when it carries none.
func (s sessions) identity(r *http.Request) (service.Identity, bool) {
	for _, id := range s.ids(r) {
		if who, ok := s.access.Session(r.Context(), id); ok {
			return who, true
		}
	}
	return service.Identity{}, false
}

// ids are those of the sessions whose cookies the request carries, ended ones among them.
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
