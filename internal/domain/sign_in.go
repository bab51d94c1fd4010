package domain

// SignInStatus is the state of the stored credentials.
type SignInStatus struct {
	Authenticated   bool
	Expired         bool
	ExpiresAt       uint64 // Unix milliseconds
	HasRefreshToken bool
}

// Credentials are what a sign-in yields and the credentials file keeps.
type Credentials struct {
	AccessToken  Secret
	RefreshToken Secret // "" when the provider gave none
	ExpiresAt    uint64 // Unix milliseconds
	Scopes       []string
}

// SignInFlow is a sign-in that waits for its callback.
type SignInFlow struct {
	Verifier    Secret
	RedirectURI string
}

// SignInCallback holds the parameters with which the provider sends the browser back. Nil is a missing parameter;
// one that is present but empty is not missing.
type SignInCallback struct {
	Code, State, Error, ErrorDescription *string
}

// SignInOutcome is how a callback ended.
type SignInOutcome string

const (
	SignInDenied       SignInOutcome = "denied"        // the provider said no
	SignInNoCode       SignInOutcome = "no code"       // the code is missing
	SignInNoState      SignInOutcome = "no state"      // the state is missing
	SignInUnknownState SignInOutcome = "unknown state" // never given out, used, or from before a restart
	SignInNoDatabase   SignInOutcome = "no database"   // the database cannot be asked whether the state was given out
	SignInUnreachable  SignInOutcome = "unreachable"   // the token endpoint gave no whole answer
	SignInRefused      SignInOutcome = "refused"       // the token endpoint's status is not a success
	SignInUnreadable   SignInOutcome = "unreadable"    // the token endpoint's answer is not a token response
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
