package login

import (
	"encoding/json"
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

// name returns a name that users cannot choose for themselves.
func (c claims) name(email string) string {
	name := email
	if name == "" {
		name = c.text("sub")
		if known := c.text("preferred_username"); known != "" && known != name {
			name = known + " (" + name + ")"
		}
	}
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, name)
	if characters := []rune(name); len(characters) > maxName {
		name = string(characters[:maxName])
	}
	return name
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
