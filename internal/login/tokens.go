package login

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"switchyard/internal/clock"
)

// untrusted is what is wrong with the provider's tokens.
type untrusted struct{ cause error }

func (e untrusted) Error() string { return e.cause.Error() }

func (e untrusted) Unwrap() error { return e.cause }

// unverified is what is wrong with a signature. The provider may have changed its keys or algorithms.
type unverified struct{ error }

// maxSkew is how far the provider's clock may be ahead.
const maxSkew = time.Minute

// exchange redeems a code.
func (e *endpoints) exchange(ctx context.Context, a Attempt, redirectURI, code string) (*oauth2.Token, error) {
	return e.client(redirectURI).Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
}

// claims verifies that the ID token was issued for this attempt and returns its claims, with missing ones from the
// provider's user info endpoint if it has one.
func (e *endpoints) claims(ctx context.Context, a Attempt, token *oauth2.Token) (claims, error) {
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, untrusted{errors.New("there is no ID token")}
	}
	idToken, err := e.verifier.Verify(ctx, raw)
	switch {
	case err != nil && (strings.Contains(err.Error(), "malformed jwt") ||
		strings.Contains(err.Error(), "failed to verify signature")):
		return nil, untrusted{unverified{err}} // the library has no error types for them
	case err != nil:
		return nil, untrusted{err}
	case idToken.IssuedAt.After(clock.Now().Add(maxSkew)):
		return nil, untrusted{errors.New("the ID token is from the future")}
	}
	if subtle.ConstantTimeCompare([]byte(idToken.Nonce), []byte(a.Nonce)) != 1 {
		return nil, untrusted{errors.New("the ID token has another nonce")}
	}
	if idToken.AccessTokenHash != "" {
		if err := idToken.VerifyAccessToken(token.AccessToken); err != nil {
			return nil, untrusted{err}
		}
	}
	all := claims{}
	if err := idToken.Claims(&all); err != nil {
		return nil, untrusted{err}
	}
	if party := all.text("azp"); party != e.config.ClientID && (party != "" || len(idToken.Audience) > 1) {
		return nil, untrusted{errors.New("the ID token was issued to another client")}
	}
	if idToken.Subject == "" {
		return nil, untrusted{errors.New("the ID token has no subject")}
	}
	if all[e.config.RolesClaim] != nil && all["email"] != nil || e.provider.UserInfoEndpoint() == "" {
		return all, nil
	}
	info, err := e.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	var call *url.Error
	switch {
	case errors.As(err, &call):
		return nil, err
	case err != nil: // not quoted: the provider's text may repeat the access token
		return nil, untrusted{errors.New("the user info is not a JSON object")}
	}
	if info.Subject != idToken.Subject {
		return nil, untrusted{errors.New("the user info is about somebody else")}
	}
	more := map[string]json.RawMessage{}
	if err := info.Claims(&more); err != nil {
		return nil, untrusted{err}
	}
	return all.with(more, e.config.RolesClaim), nil
}
