package login

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"golang.org/x/oauth2"

	"switchyard/internal/clock"
	"switchyard/internal/config"
	"switchyard/internal/domain"
)

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

// actor returns who has logged in: by a verified e-mail address, else by a name that is unique at the provider.
func (c claims) actor(settings config.Login) domain.Actor {
	email := c.text("email")
	if !c.isTrue("email_verified") {
		email = ""
	}
	groups := c.texts(settings.RolesClaim)
	if settings.RolesClaim == "email" { // counts only when it is verified
		groups = nil
	}
	return domain.Actor{
		Who: c.name(email), Via: domain.ViaLogin, Role: settings.Roles.Of(groups, email),
		Account: "login " + settings.Issuer + " " + c.text("sub"),
	}
}

// account names the account to the person who has logged in with it, who knows it by its address or name rather than by
// its id.
func (c claims) account() string {
	return printable(cmp.Or(c.text("email"), c.text("preferred_username"), c.text("name"), c.text("sub")))
}

func (c claims) refusal(settings config.Login) string {
	groups := c.texts(settings.RolesClaim)
	switch {
	case c.text("email") != "" && !c.isTrue("email_verified"):
		return "your e-mail address is not verified there, and none of your groups has a role here"
	case len(groups) == 0:
		return fmt.Sprintf("the provider names no groups of yours (claim %q), and your e-mail address has no role here",
			settings.RolesClaim)
	}
	return fmt.Sprintf("neither your e-mail address nor any of your groups (%s) has a role here",
		printable(strings.Join(groups, ", ")))
}

// name returns a name that users cannot choose for themselves.
func (c claims) name(email string) string {
	id := c.text("sub")
	if known := c.text("preferred_username"); known != "" && known != id {
		id = known + " (" + id + ")"
	}
	return printable(cmp.Or(email, id))
}

// printable returns text without control and invisible characters, cut to maxName.
func printable(text string) string {
	return domain.Truncate(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, text), maxName)
}

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

// tokenError is what is wrong with the provider's tokens.
type tokenError struct{ error }

func (e tokenError) Unwrap() error { return e.error }

// signatureError is what is wrong with a signature. The provider may have changed its keys or algorithms.
type signatureError struct{ error }

// maxSkew is how far the provider's clock may be ahead.
const maxSkew = time.Minute

// claims verifies that the ID token was issued for this attempt and returns its claims, with missing ones from the
// provider's user info endpoint if it has one.
func (e *endpoints) claims(ctx context.Context, a Attempt, token *oauth2.Token) (claims, error) {
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, tokenError{errors.New("there is no ID token")}
	}
	idToken, err := e.verifier.Verify(ctx, raw)
	switch {
	case err != nil && (strings.Contains(err.Error(), "malformed jwt") ||
		strings.Contains(err.Error(), "failed to verify signature")):
		return nil, tokenError{signatureError{err}} // the library has no error types for them
	case err != nil:
		return nil, tokenError{err}
	case idToken.IssuedAt.After(clock.Now().Add(maxSkew)):
		return nil, tokenError{errors.New("the ID token is from the future")}
	case subtle.ConstantTimeCompare([]byte(idToken.Nonce), []byte(a.Nonce)) != 1:
		return nil, tokenError{errors.New("the ID token has another nonce")}
	}
	if idToken.AccessTokenHash != "" {
		if err := idToken.VerifyAccessToken(token.AccessToken); err != nil {
			return nil, tokenError{err}
		}
	}
	all := claims{}
	if err := idToken.Claims(&all); err != nil {
		return nil, tokenError{err}
	}
	switch party := all.text("azp"); {
	case party != e.config.ClientID && (party != "" || len(idToken.Audience) > 1):
		return nil, tokenError{errors.New("the ID token was issued to another client")}
	case idToken.Subject == "":
		return nil, tokenError{errors.New("the ID token has no subject")}
	case all[e.config.RolesClaim] != nil && all["email"] != nil || e.provider.UserInfoEndpoint() == "":
		return all, nil
	}
	info, err := e.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	switch _, away := errors.AsType[*url.Error](err); {
	case away:
		return nil, err
	case err != nil: // not quoted: the provider's text may repeat the access token
		return nil, tokenError{errors.New("the user info is not a JSON object")}
	case info.Subject != idToken.Subject:
		return nil, tokenError{errors.New("the user info is about somebody else")}
	}
	more := claims{}
	if err := info.Claims(&more); err != nil {
		return nil, tokenError{err}
	}
	return all.with(more, e.config.RolesClaim), nil
}
