package views

import (
	"net/url"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// Addresses of the forms on the Access page.
func RevokeNamedTokenURL(id string) string {
	return AccessURL + "/tokens/" + url.PathEscape(id) + "/revoke"
}

func EndSessionURL(id string) string { return AccessURL + "/sessions/" + url.PathEscape(id) + "/end" }

const EndOthersURL = AccessURL + "/sessions/end-others"

type tokenLife struct {
	value, words string
	days         int
}

func (l tokenLife) at(now time.Time) string {
	if l.days == 0 {
		return l.words
	}
	return l.words + ", " + now.AddDate(0, 0, l.days).Format("2 January 2006")
}

var tokenLives = []tokenLife{
	{"", "never", 0},
	{"24h", "in a day", 1},
	{"720h", "in 30 days", 30},
	{"2160h", "in 90 days", 90},
	{"8760h", "in a year", 365},
}

var roleWords = map[domain.Role]string{
	domain.RoleViewer:   "sees everything but secrets",
	domain.RoleOperator: "also moves stories, answers, assigns, acknowledges",
	domain.RoleAdmin:    "also projects, bot, sign-in, access",
}

// tokens splits the tokens by whom they are for: people and programs, agents, wall displays.
func (p AccessProps) tokens() (tokens, agents, walls []domain.NamedToken) {
	for _, t := range p.Tokens {
		switch {
		case t.Role == domain.RoleWall:
			walls = append(walls, t)
		case t.AgentID != "":
			agents = append(agents, t)
		default:
			tokens = append(tokens, t)
		}
	}
	return tokens, agents, walls
}

// soon is how long before its end a token is said to expire soon.
const soon = 7 * 24 * time.Hour

func expiresSoon(t domain.NamedToken, now time.Time) bool {
	return !t.ExpiresAt.IsZero() && !t.Expired(now) && t.ExpiresAt.Sub(now) < soon
}

// isOn reports whether a wall display is on: it asks every few seconds.
func isOn(t domain.NamedToken, now time.Time) bool { return now.Sub(t.LastUsed) < 2*time.Minute }

// facts are the numbers above the page, for these numbers of tokens of people and programs and of wall displays.
func (p AccessProps) facts(tokens, walls int) []fact {
	ending, on, people := 0, 0, map[string]bool{}
	for _, s := range p.Sessions {
		people[s.Account] = true
	}
	for _, t := range p.Tokens {
		if t.Role == domain.RoleWall && isOn(t, p.Now) {
			on++
		} else if t.AgentID == "" && expiresSoon(t, p.Now) {
			ending++
		}
	}
	list := []fact{
		{name: "Login", value: "none", beside: "no provider is set up"},
		{name: "Admin token", value: "none", beside: "no way in by it"},
		{name: "Logged in now", value: thousands(len(p.Sessions)), beside: domain.Count(len(people), "account", "accounts")},
		{name: "Tokens", value: thousands(tokens), beside: domain.Count(p.Agents, "agent has", "agents have") + " their own"},
		{name: "Wall displays", value: thousands(walls), beside: thousands(on) + " on now"},
	}
	if p.Provider != "" {
		list[0] = fact{name: "Login", value: p.Provider, beside: "OpenID Connect", tone: "is-on"}
	}
	if p.AdminToken {
		list[1] = fact{name: "Admin token", value: "set", beside: "a way in beside the login", tone: "is-on"}
		if p.Provider == "" {
			list[1].beside = "the way in for administrators"
		}
	}
	if ending > 0 {
		list[3].beside = domain.Count(ending, "ends soon", "end soon")
	}
	return list
}

func viaWords(v domain.Via) string {
	if v == domain.ViaOpen {
		return "without login"
	}
	return strings.ReplaceAll(string(v), "_", " ")
}

func readerName(a domain.Actor) string {
	if a.Via == domain.ViaOpen {
		return "Everybody"
	}
	return domain.Cut(a.Who, 60)
}

func readerRole(a domain.Actor) string {
	return roleWord(a.Role) + ", " + viaWords(a.Via)
}

func roleWord(r domain.Role) string {
	if r == domain.RoleAdmin {
		return "administrator"
	}
	return string(r)
}

func methodAndRole(e domain.AuditEntry) string {
	if e.Role == "" {
		return viaWords(e.Via)
	}
	return viaWords(e.Via) + " · " + roleWord(e.Role)
}

func actionWords(a domain.Action) string {
	return upper(strings.NewReplacer(".", " ", "_", " ").Replace(string(a)))
}
