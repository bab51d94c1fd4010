package service

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// SignInProvider is the identity provider. Begin returns the address at which a browser signs in. Redeem works once
// for each state that Begin issued; its errors are *domain.SignInError.
type SignInProvider interface {
	Begin(ctx context.Context, redirectURI string) (address string, err error)
	Redeem(ctx context.Context, code, state string) (domain.Credentials, error)
}

// CredentialsFile keeps the tokens.
type CredentialsFile interface {
	Read() (domain.Credentials, error)
	Write(domain.Credentials) error
	Remove() error
}

// SignInSetup says which settings of the sign-in are missing.
type SignInSetup struct {
	Missing    []string // keys of the configuration file
	ConfigFile string   // where to set them; "" if unknown
}

// SignIn is the gateway's own sign-in at the identity provider.
type SignIn struct {
	audit       *Audit
	provider    SignInProvider  // nil when sign-in is not set up
	credentials CredentialsFile // nil only then
	setup       SignInSetup
	log         *slog.Logger
}

// Start begins a sign-in that comes back to redirectURI, and returns the address at which a browser continues it.
// It returns NotFound when no identity provider is configured.
func (s *SignIn) Start(ctx context.Context, redirectURI string) (address string, err error) {
	if s.provider == nil {
		return "", domain.Errorf(domain.NotFound, "sign-in is not set up: no identity provider is configured")
	}
	return s.provider.Begin(ctx, redirectURI)
}

// Finish takes the parameters with which the provider sent the browser back, and stores the credentials on success. An exchange
// that has begun is completed even if the browser leaves, since its code is used up.
func (s *SignIn) Finish(ctx context.Context, c domain.SignInCallback) domain.SignInResult {
	result := s.finish(context.WithoutCancel(ctx), c)
	switch result.Outcome {
	case domain.SignInDone:
		if domain.ActorOf(ctx).Who == "" { // an administrator has begun it, but in another browser or under another host name
			ctx = domain.WithActor(ctx, &domain.Actor{Via: domain.ViaCallback, RequestID: domain.ActorOf(ctx).RequestID})
		}
		s.audit.changed(ctx, domain.Change{Action: domain.SignedIn, Subject: "identity provider", Detail: "the credentials are stored"})
	case domain.SignInNoDatabase, domain.SignInUnreachable, domain.SignInRefused, domain.SignInUnreadable, domain.SignInNotSaved:
		s.log.WarnContext(ctx, "sign-in failed", "outcome", result.Outcome, "detail", result.Detail)
	}
	return result
}

// finish checks in this order so that what is missing is found before a state is used up.
func (s *SignIn) finish(ctx context.Context, c domain.SignInCallback) domain.SignInResult {
	switch {
	case c.Error != nil:
		return domain.SignInResult{Outcome: domain.SignInDenied, Detail: denial(*c.Error, c.ErrorDescription)}
	case c.Code == nil:
		return domain.SignInResult{Outcome: domain.SignInNoCode}
	case c.State == nil:
		return domain.SignInResult{Outcome: domain.SignInNoState}
	case s.provider == nil: // no state was ever issued
		return domain.SignInResult{Outcome: domain.SignInUnknownState}
	}
	credentials, err := s.provider.Redeem(ctx, *c.Code, *c.State)
	if err != nil {
		return resultOf(err)
	}
	if err := s.credentials.Write(credentials); err != nil {
		return domain.SignInResult{Outcome: domain.SignInNotSaved, Detail: err.Error()}
	}
	return domain.SignInResult{Outcome: domain.SignInDone}
}

// denial returns the provider's words about its refusal, with its code in brackets, which the provider's manual explains.
func denial(code string, description *string) string {
	text := "Unknown error"
	if description != nil {
		text = *description
	}
	if code == "" {
		return text
	}
	return text + " (" + code + ")"
}

func resultOf(err error) domain.SignInResult {
	var failure *domain.SignInError
	if errors.As(err, &failure) {
		return domain.SignInResult(*failure)
	}
	return domain.SignInResult{Outcome: domain.SignInUnreachable, Detail: err.Error()}
}

// Setup returns which settings are missing.
func (s *SignIn) Setup() SignInSetup {
	if s.provider == nil {
		return SignInSetup{Missing: signInKeys, ConfigFile: s.setup.ConfigFile}
	}
	return s.setup
}

// signInKeys are the keys of the settings that signing in needs.
var signInKeys = []string{"sign_in.authorize_url", "sign_in.token_url", "sign_in.client_id", "sign_in.product"}

// Configured reports whether there is an identity provider to sign in at: both of its addresses are set.
func (s *SignIn) Configured() bool {
	return s.provider != nil && !slices.Contains(s.setup.Missing, "sign_in.authorize_url") && !slices.Contains(s.setup.Missing, "sign_in.token_url")
}

// Status reads the credentials file. An unreadable file counts as not signed in.
func (s *SignIn) Status() domain.SignInStatus {
	if s.credentials == nil {
		return domain.SignInStatus{}
	}
	c, err := s.credentials.Read()
	if err != nil {
		return domain.SignInStatus{}
	}
	return domain.SignInStatus{
		Authenticated:   true,
		Expired:         uint64(max(0, time.Now().UnixMilli())) > c.ExpiresAt,
		ExpiresAt:       c.ExpiresAt,
		HasRefreshToken: c.RefreshToken != "",
	}
}

// SignOut removes the stored credentials and returns the status that follows. It returns an Internal error, with the
// file as it was, when that cannot be changed.
func (s *SignIn) SignOut(ctx context.Context) (domain.SignInStatus, error) {
	if err := s.credentials.Remove(); err != nil {
		return domain.SignInStatus{}, domain.Errorf(domain.Internal, "the credentials could not be removed: %v", err)
	}
	s.audit.changed(ctx, domain.Change{Action: domain.SignedOut, Subject: "identity provider", Detail: "the credentials are removed"})
	return s.Status(), nil
}
