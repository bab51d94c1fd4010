package service

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// SignInProvider is the identity provider. Begin returns the address to which to send the browser. Redeem works once
// for each state that Begin issued; its errors are domain.SignInResults.
type SignInProvider interface {
	Begin(ctx context.Context, redirectURI string) (address string, err error)
	Redeem(ctx context.Context, code, state string) (domain.Credentials, error)
}

type CredentialsFile interface {
	Read() (domain.Credentials, error)
	Write(domain.Credentials) error
	Remove() error
}

type SignInSetup struct {
	Missing    []string // keys of the configuration file
	ConfigFile string   // where to set them; "" if unknown
}

// SignIn is the gateway's own sign-in at the identity provider.
type SignIn struct {
	audit       *Audit
	provider    SignInProvider  // nil if sign-in is not set up
	credentials CredentialsFile // nil only if provider is
	setup       SignInSetup
	log         *slog.Logger
}

// Start begins a sign-in that returns to redirectURI, and returns the address to which to send the browser. It returns
// NotFound if no identity provider is configured.
func (s *SignIn) Start(ctx context.Context, redirectURI string) (address string, err error) {
	if s.provider == nil {
		return "", domain.Errorf(domain.NotFound, "sign-in is not set up: no identity provider is configured")
	}
	return s.provider.Begin(ctx, redirectURI)
}

// Finish completes a sign-in with the parameters of its callback, and stores the credentials on success. Once begun, an
// exchange is completed even if the browser goes away, since its code is used up.
func (s *SignIn) Finish(ctx context.Context, c domain.SignInCallback) domain.SignInResult {
	result := s.finish(context.WithoutCancel(ctx), c)
	switch result.Outcome {
	case domain.SignInDone:
		if domain.ActorOf(ctx).Who == "" { // an administrator began it in another browser or under another host name
			ctx = domain.WithActor(ctx, &domain.Actor{Via: domain.ViaCallback, RequestID: domain.ActorOf(ctx).RequestID})
		}
		s.audit.changed(ctx, domain.Change{
			Action: domain.SignedIn, Subject: "identity provider", Detail: "the credentials are stored",
		})
	case domain.SignInNoDatabase, domain.SignInUnreachable, domain.SignInRefused, domain.SignInUnreadable,
		domain.SignInNotSaved:
		s.log.WarnContext(ctx, "sign-in failed", "outcome", result.Outcome, "detail", result.Detail)
	}
	return result
}

// finish reports missing parameters before it uses up the state.
func (s *SignIn) finish(ctx context.Context, c domain.SignInCallback) domain.SignInResult {
	switch {
	case c.Error != nil:
		return domain.SignInResult{Outcome: domain.SignInDenied, Detail: denial(*c.Error, c.ErrorDescription)}
	case c.Code == nil:
		return domain.SignInResult{Outcome: domain.SignInNoCode}
	case c.State == nil:
		return domain.SignInResult{Outcome: domain.SignInNoState}
	case s.provider == nil: // so no state has been issued
		return domain.SignInResult{Outcome: domain.SignInUnknownState}
	}
	credentials, err := s.provider.Redeem(ctx, *c.Code, *c.State)
	if failure, ok := errors.AsType[domain.SignInResult](err); ok {
		return failure
	}
	if err != nil {
		return domain.SignInResult{Outcome: domain.SignInUnreachable, Detail: err.Error()}
	}
	if err := s.credentials.Write(credentials); err != nil {
		return domain.SignInResult{Outcome: domain.SignInNotSaved, Detail: err.Error()}
	}
	return domain.SignInResult{Outcome: domain.SignInDone}
}

// denial returns the provider's description of its refusal, followed by its error code, which the provider's manual
// explains.
func denial(code string, description *string) string {
	text := "Unknown error"
	if description != nil {
		text = *description
	}
	if code != "" {
		text += " (" + code + ")"
	}
	return text
}

func (s *SignIn) Setup() SignInSetup { return s.setup }

// Configured reports whether there is an identity provider to sign in with: both of its addresses are set.
func (s *SignIn) Configured() bool {
	return s.provider != nil && !slices.Contains(s.setup.Missing, "sign_in.authorize_url") &&
		!slices.Contains(s.setup.Missing, "sign_in.token_url")
}

// Status returns the status from the credentials file. An unreadable file counts as not signed in.
func (s *SignIn) Status() domain.SignInStatus {
	if s.credentials == nil {
		return domain.SignInStatus{}
	}
	c, err := s.credentials.Read()
	if err != nil {
		return domain.SignInStatus{}
	}
	return domain.SignInStatus{
		Authenticated: true, Expired: uint64(max(0, time.Now().UnixMilli())) > c.ExpiresAt, ExpiresAt: c.ExpiresAt,
		HasRefreshToken: c.RefreshToken != "",
	}
}

// SignOut removes the stored credentials and returns the new status. It returns an Internal error, and changes nothing,
// if the file cannot be changed.
func (s *SignIn) SignOut(ctx context.Context) (domain.SignInStatus, error) {
	if err := s.credentials.Remove(); err != nil {
		return domain.SignInStatus{}, domain.Errorf(domain.Internal, "the credentials could not be removed: %v", err)
	}
	s.audit.changed(ctx, domain.Change{
		Action: domain.SignedOut, Subject: "identity provider", Detail: "the credentials are removed",
	})
	return s.Status(), nil
}
