package service

import (
	"context"
	"errors"
	"time"

	"switchyard/internal/yard"
)

// SignInProvider is the identity provider. Begin returns the address at which a browser signs in. Redeem works once
// for each state that Begin gave out; its errors are *yard.SignInError.
type SignInProvider interface {
	Begin(redirectURI string) (address string)
	Redeem(ctx context.Context, code, state string) (yard.Credentials, error)
}

// CredentialsFile keeps the tokens.
type CredentialsFile interface {
	Read() (yard.Credentials, error)
	Write(yard.Credentials) error
	Remove() error
}

// StartSignIn begins a sign-in that comes back to redirectURI, and returns the address at which a browser continues it.
// It returns an Unavailable error when no identity provider is configured.
func (s *Service) StartSignIn(redirectURI string) (address string, err error) {
	if s.provider == nil {
		return "", yard.Errorf(yard.Unavailable, "sign-in is not set up: no identity provider is configured")
	}
	return s.provider.Begin(redirectURI), nil
}

// FinishSignIn takes what the provider sent the browser back with, and stores the credentials when all is well.
// An exchange that has begun is carried through even if the browser leaves: the code is used up then.
func (s *Service) FinishSignIn(ctx context.Context, c yard.SignInCallback) yard.SignInResult {
	result := s.finishSignIn(context.WithoutCancel(ctx), c)
	switch result.Outcome {
	case yard.SignInDone:
		s.log.InfoContext(ctx, "signed in")
	case yard.SignInUnreachable, yard.SignInRefused, yard.SignInUnreadable, yard.SignInNotSaved:
		s.log.WarnContext(ctx, "sign-in failed", "outcome", result.Outcome, "detail", result.Detail)
	}
	return result
}

// finishSignIn holds the order of the checks: what is missing is found before a state is used up.
func (s *Service) finishSignIn(ctx context.Context, c yard.SignInCallback) yard.SignInResult {
	switch {
	case c.Error != nil && c.ErrorDescription != nil:
		return yard.SignInResult{Outcome: yard.SignInDenied, Detail: *c.ErrorDescription}
	case c.Error != nil:
		return yard.SignInResult{Outcome: yard.SignInDenied, Detail: "Unknown error"}
	case c.Code == nil:
		return yard.SignInResult{Outcome: yard.SignInNoCode}
	case c.State == nil:
		return yard.SignInResult{Outcome: yard.SignInNoState}
	case s.provider == nil: // no state was ever given out
		return yard.SignInResult{Outcome: yard.SignInUnknownState}
	}
	credentials, err := s.provider.Redeem(ctx, *c.Code, *c.State)
	if err != nil {
		return resultOf(err)
	}
	if err := s.credentials.Write(credentials); err != nil {
		return yard.SignInResult{Outcome: yard.SignInNotSaved, Detail: err.Error()}
	}
	return yard.SignInResult{Outcome: yard.SignInDone}
}

func resultOf(err error) yard.SignInResult {
	var failure *yard.SignInError
	if errors.As(err, &failure) {
		return yard.SignInResult(*failure)
	}
	return yard.SignInResult{Outcome: yard.SignInUnreachable, Detail: err.Error()}
}

// SignInConfigured reports whether there is an identity provider to sign in at.
func (s *Service) SignInConfigured() bool { return s.provider != nil }

// SignInStatus reads the credentials file: whatever makes it unreadable means not signed in.
func (s *Service) SignInStatus() yard.SignInStatus {
	if s.credentials == nil {
		return yard.SignInStatus{}
	}
	c, err := s.credentials.Read()
	if err != nil {
		return yard.SignInStatus{}
	}
	return yard.SignInStatus{
		Authenticated:   true,
		Expired:         uint64(max(0, time.Now().UnixMilli())) > c.ExpiresAt,
		ExpiresAt:       c.ExpiresAt,
		HasRefreshToken: c.RefreshToken != "",
	}
}

// SignOut removes the stored credentials and returns the status that follows. It returns an Internal error, with the
// file as it was, when that cannot be changed.
func (s *Service) SignOut(ctx context.Context) (yard.SignInStatus, error) {
	if err := s.credentials.Remove(); err != nil {
		return yard.SignInStatus{}, yard.Errorf(yard.Internal, "the credentials could not be removed: %v", err)
	}
	s.log.InfoContext(ctx, "signed out")
	return s.SignInStatus(), nil
}
