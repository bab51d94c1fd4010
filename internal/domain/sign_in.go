package domain

import "strings"

type SignInStatus struct {
	Authenticated   bool   `json:"authenticated"`
	Expired         bool   `json:"expired"`
	ExpiresAt       uint64 `json:"expires_at"` // Unix milliseconds
	HasRefreshToken bool   `json:"has_refresh_token"`
}

// Credentials are the result of a sign-in, kept in the credentials file.
type Credentials struct {
	AccessToken  Secret
	RefreshToken Secret // "" if the provider sent none
	ExpiresAt    uint64 // Unix milliseconds
	Scopes       []string
}

type SignInFlow struct {
	Verifier    Secret
	RedirectURI string
}

// SignInCallback holds the parameters of the provider's callback. Nil is a missing parameter; an empty one is not
// missing.
type SignInCallback struct {
	Code, State, Error, ErrorDescription *string
}

type SignInOutcome string

const (
	SignInDenied       SignInOutcome = "denied"        // the provider refused
	SignInNoCode       SignInOutcome = "no code"       // the code is missing
	SignInNoState      SignInOutcome = "no state"      // the state is missing
	SignInUnknownState SignInOutcome = "unknown state" // never issued, already used, or from before a restart
	SignInNoDatabase   SignInOutcome = "no database"   // the database that has the states cannot be reached
	SignInUnreachable  SignInOutcome = "unreachable"   // no complete response from the token endpoint
	SignInRefused      SignInOutcome = "refused"       // the token endpoint's status is not 2xx
	SignInUnreadable   SignInOutcome = "unreadable"    // the response is not a token response
	SignInNotSaved     SignInOutcome = "not saved"     // the credentials file could not be written
	SignInDone         SignInOutcome = "done"
)

// SignInResult is the outcome of a callback, with a detail that users may see ("" if the outcome says it all).
type SignInResult struct {
	Outcome SignInOutcome
	Detail  string
}

// Error makes the result of a failed exchange an error: unknown state, unreachable, refused or unreadable. Its detail
// contains no code, token, verifier or query.
func (r SignInResult) Error() string {
	return strings.TrimSuffix(string(r.Outcome)+": "+r.Detail, ": ")
}
