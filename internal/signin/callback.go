package signin

import (
	"net/url"
	"strings"

	"switchyard/internal/domain"
)

// ParseCallback reads the parameters of a callback's query; the first of a repeated one counts. Badly escaped values
// are kept as they are: url.ParseQuery would drop the parameter and so miss a refusal.
func ParseCallback(query string) domain.SignInCallback {
	var c domain.SignInCallback
	parameters := map[string]**string{
		"code": &c.Code, "state": &c.State, "error": &c.Error, "error_description": &c.ErrorDescription,
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if to := parameters[unescaped(name)]; to != nil && *to == nil {
			value = unescaped(value)
			*to = &value
		}
	}
	return c
}

func unescaped(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// ParsePastedCallback reads what a person copied by hand: the whole callback address, only its query, or "code#state"
// as some providers show it. It returns Invalid for anything else.
func ParsePastedCallback(text string) (domain.SignInCallback, error) {
	text = strings.TrimSpace(text)
	address, _, _ := strings.Cut(text, "#")
	_, query, isAddress := strings.Cut(address, "?")
	if !isAddress {
		query = address
	}
	if c := ParseCallback(query); c.Error != nil || c.Code != nil && c.State != nil {
		return c, nil
	}
	if code, state, found := strings.Cut(text, "#"); found && !isAddress && isToken(code) && isToken(state) {
		return domain.SignInCallback{Code: &code, State: &state}, nil
	}
	return domain.SignInCallback{}, domain.Errorf(domain.Invalid,
		"This is neither a callback address nor a code with its state. "+
			"Copy the whole address from the browser's address bar, or all of the code.")
}

// isToken reports whether text may be a code or a state, rather than an address or prose.
func isToken(text string) bool {
	return text != "" && !strings.Contains(text, "://") && !strings.ContainsAny(text, "# \t\r\n")
}
