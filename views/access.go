package views

import (
	"net/url"
	"strings"

	"switchyard/internal/domain"
)

// Addresses of the forms on the Access page.
func RevokeNamedTokenURL(id string) string {
	return AccessURL + "/tokens/" + url.PathEscape(id) + "/revoke"
}

func EndSessionURL(id string) string { return AccessURL + "/sessions/" + url.PathEscape(id) + "/end" }

// tokenLives are the choices for how long a token is valid: durations, and their words.
var tokenLives = []struct{ value, words string }{
	{"", "never"}, {"24h", "in a day"}, {"720h", "in 30 days"}, {"2160h", "in 90 days"}, {"8760h", "in a year"},
}

func viaWords(v domain.Via) string {
	if v == domain.ViaOpen {
		return "without login"
	}
	return strings.ReplaceAll(string(v), "_", " ")
}

// readerName returns the name of whoever reads the page.
func readerName(a domain.Actor) string {
	if a.Via == domain.ViaOpen {
		return "Everybody"
	}
	return domain.Cut(a.Who, 60)
}

func readerRole(a domain.Actor) string {
	role := string(a.Role)
	if a.Role == domain.RoleAdmin {
		role = "administrator"
	}
	return role + ", " + viaWords(a.Via)
}

func methodAndRole(e domain.AuditEntry) string {
	if e.Role == "" {
		return viaWords(e.Via)
	}
	return viaWords(e.Via) + ", " + string(e.Role)
}

func actionWords(a domain.Action) string {
	return upper(strings.NewReplacer(".", " ", "_", " ").Replace(string(a)))
}
