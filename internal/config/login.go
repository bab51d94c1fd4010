package config

import (
	"errors"
	"net/netip"

	"switchyard/internal/domain"
)

const loginSecretVariable = "SWITCHYARD_LOGIN_CLIENT_SECRET"

// Login configures how people log in to the console other than by token: through an OpenID Connect provider, a trusted proxy,
// or both.
type Login struct {
	Issuer       string        // the provider's issuer, "" for none
	ClientID     string        // set whenever Issuer is
	ClientSecret domain.Secret // "" for a public client
	RolesClaim   string
	Roles        domain.RoleLists

	TrustedProxies []netip.Prefix // networks whose X-Forwarded-For and headers below are trusted
	UserHeader     string         // names the user; "" when the proxies authenticate nobody
	GroupsHeader   string

	clientSecretFile string
}

// HasProxyLogin reports whether a trusted proxy authenticates users.
func (l Login) HasProxyLogin() bool { return l.UserHeader != "" && len(l.TrustedProxies) > 0 }

// IsSetUp reports whether people can log in without the admin token.
func (l Login) IsSetUp() bool { return l.Issuer != "" || l.HasProxyLogin() }

// readLogin reads the client secret and checks the login settings that depend on each other.
func (c *Config) readLogin(last map[string]given, getenv func(string) string) error {
	l := &c.Login
	if issuer := last["login.issuer"]; l.Issuer != "" && l.ClientID == "" {
		return issuer.fail(errors.New("needs login.client_id, the name under which the provider knows this gateway"))
	}
	if err := c.readClientSecret(last["login.client_secret_file"], getenv); err != nil {
		return err
	}
	if user, ok := last["login.user_header"]; ok && !l.HasProxyLogin() {
		c.Warnings = append(c.Warnings, user.fail(errors.New("has no effect without login.trusted_proxies")).Error())
	}
	if groups, ok := last["login.groups_header"]; ok && l.UserHeader == "" {
		c.Warnings = append(c.Warnings, groups.fail(errors.New("has no effect without login.user_header")).Error())
	}
	if l.IsSetUp() && l.Roles.Empty() {
		c.Warnings = append(c.Warnings, "nobody can log in except with a token: login.viewers, login.operators and login.admins are empty")
	}
	return nil
}

// readClientSecret takes the client secret from the variable, else from the file. There may be none.
func (c *Config) readClientSecret(file given, getenv func(string) string) (err error) {
	if value := getenv(loginSecretVariable); value != "" {
		if c.Login.ClientSecret, err = parseToken(value); err != nil {
			return given{named(loginSecretVariable), nil}.fail(err)
		}
		return nil
	}
	if c.Login.clientSecretFile == "" {
		return nil
	}
	secret, warning, err := ReadTokenFile(c.Login.clientSecretFile, getenv)
	if err != nil {
		return file.fail(err)
	}
	c.Login.ClientSecret = secret
	if warning != "" {
		c.Warnings = append(c.Warnings, warning)
	}
	return nil
}
