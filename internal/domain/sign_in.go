package domain

import (
	"net/url"
	"strings"
)

// SignInStatus is the state of the stored credentials.
type SignInStatus struct {
	Authenticated   bool   `json:"authenticated"`
	Expired         bool   `json:"expired"`
	ExpiresAt       uint64 `json:"expires_at"` // Unix milliseconds
	HasRefreshToken bool   `json:"has_refresh_token"`
}

// Credentials are what a sign-in yields and the credentials file keeps.
type Credentials struct {
	AccessToken  Secret
	RefreshToken Secret // "" when the provider gave none
	ExpiresAt    uint64 // Unix milliseconds
	Scopes       []string
}

// SignInCallback holds the parameters with which the provider sends the browser back. Nil is a missing parameter;
// one that is present but empty is not missing.
type SignInCallback struct {
	Code, State, Error, ErrorDescription *string
}

// NewSignInCallback reads the parameters of a callback's query. Of a repeated one the first counts. What is badly escaped
// stands as it is: url.ParseQuery would leave such a parameter out, and take a refusal for none.
func NewSignInCallback(query string) SignInCallback {
	var c SignInCallback
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

// ParsePastedCallback reads what a person copied by hand: the whole callback address, its query alone, or
// "code#state" as some providers show it. It returns an Invalid error for anything else.
func ParsePastedCallback(text string) (SignInCallback, error) {
	text = strings.TrimSpace(text)
	address, _, _ := strings.Cut(text, "#")
	_, query, isAddress := strings.Cut(address, "?")
	if !isAddress {
		query = address
	}
	if c := NewSignInCallback(query); c.Error != nil || c.Code != nil && c.State != nil {
		return c, nil
	}
	if code, state, found := strings.Cut(text, "#"); found && !isAddress && isToken(code) && isToken(state) {
		return SignInCallback{Code: &code, State: &state}, nil
	}
	return SignInCallback{}, Errorf(Invalid, "This is neither a callback address nor a code with its state. "+
		"Copy the whole address that the browser ended at, or all of the code.")
}

// isToken reports whether text can be a code or a state: something that is neither an address nor prose.
func isToken(text string) bool {
	return text != "" && !strings.Contains(text, "://") && !strings.ContainsAny(text, "# \t\r\n")
}

// SignInOutcome is how a callback ended.
type SignInOutcome string

const (
	SignInDenied       SignInOutcome = "denied"        // the provider said no
	SignInNoCode       SignInOutcome = "no code"       // the code is missing
	SignInNoState      SignInOutcome = "no state"      // the state is missing
	SignInUnknownState SignInOutcome = "unknown state" // never given out, used, or from before a restart
	SignInUnreachable  SignInOutcome = "unreachable"   // the token endpoint gave no whole answer
	SignInRefused      SignInOutcome = "refused"       // the token endpoint's status is no success
	SignInUnreadable   SignInOutcome = "unreadable"    // the token endpoint's answer is no token response
	SignInNotSaved     SignInOutcome = "not saved"     // the credentials file could not be written
	SignInDone         SignInOutcome = "done"
)

// SignInResult is how a callback ended, with what a person may see of the reason ("" where the outcome says it all).
type SignInResult struct {
	Outcome SignInOutcome
	Detail  string
}

// SignInError is an exchange that failed: unknown state, unreachable, refused or unreadable.
// Its detail holds no code, token, verifier or query.
type SignInError SignInResult

func (e *SignInError) Error() string {
	if e.Detail == "" {
		return string(e.Outcome)
	}
	return string(e.Outcome) + ": " + e.Detail
}
