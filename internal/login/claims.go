package login

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"switchyard/internal/domain"
)

// Person is somebody who has logged in.
type Person struct {
	ID   string // of the provider, unique there
	Name string // a verified e-mail address, else a name that is unique at the provider
	Role domain.Role
}

// maxName is where names are cut, in characters.
const maxName = 200

// claims are a provider's statements about a user, by name.
type claims map[string]json.RawMessage

// with adds those relevant claims of more that c lacks. email and email_verified are always taken from the same source.
func (c claims) with(more claims, rolesClaim string) claims {
	if c["email"] == nil {
		c["email"], c["email_verified"] = more["email"], more["email_verified"]
	}
	for _, name := range []string{rolesClaim, "preferred_username"} {
		if c[name] == nil && name != "email" && name != "email_verified" {
			c[name] = more[name]
		}
	}
	return c
}

func (c claims) person(config Config) Person {
	email := c.text("email")
	if !c.isTrue("email_verified") {
		email = ""
	}
	groups := c.texts(config.RolesClaim)
	if config.RolesClaim == "email" { // counts only when it is verified
		groups = nil
	}
	return Person{ID: config.Issuer + " " + c.text("sub"), Name: c.name(email), Role: config.Roles.Of(groups, email)}
}

// account names the account to the person who has logged in with it, who knows it by its address or name rather than by
// its id.
func (c claims) account() string {
	for _, name := range []string{"email", "preferred_username", "name"} {
		if text := c.text(name); text != "" {
			return printable(text)
		}
	}
	return printable(c.text("sub"))
}

// refusal says why the person has no role.
func (c claims) refusal(config Config) string {
	groups := c.texts(config.RolesClaim)
	switch {
	case c.text("email") != "" && !c.isTrue("email_verified"):
		return "your e-mail address is not verified there, and none of your groups has a role here"
	case len(groups) == 0:
		return fmt.Sprintf("the provider names no groups of yours (claim %q), and your e-mail address has no role here",
			config.RolesClaim)
	}
	return fmt.Sprintf("neither your e-mail address nor any of your groups (%s) has a role here",
		printable(strings.Join(groups, ", ")))
}

// name returns a name that users cannot choose for themselves.
func (c claims) name(email string) string {
	name := email
	if name == "" {
		name = c.text("sub")
		if known := c.text("preferred_username"); known != "" && known != name {
			name = known + " (" + name + ")"
		}
	}
	return printable(name)
}

// printable returns text without control and invisible characters, cut to maxName.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, text)
	if characters := []rune(text); len(characters) > maxName {
		text = string(characters[:maxName])
	}
	return text
}

// text returns a string claim, "" for any other.
func (c claims) text(name string) string {
	var text string
	_ = json.Unmarshal(c[name], &text)
	return text
}

// texts returns the strings of a claim that is a list, or the one string that it is.
func (c claims) texts(name string) (texts []string) {
	var values []any
	if json.Unmarshal(c[name], &values) != nil {
		values = []any{c.text(name)}
	}
	for _, value := range values {
		if text, ok := value.(string); ok && text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// isTrue reports whether a claim is true; some providers send "true" as a string.
func (c claims) isTrue(name string) bool {
	var yes bool
	return json.Unmarshal(c[name], &yes) == nil && yes || c.text(name) == "true"
}
