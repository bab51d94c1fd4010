package config

import (
	"net/netip"

	"switchyard/internal/domain"
)

const loginSecretVariable = "SWITCHYARD_LOGIN_CLIENT_SECRET"

// Login configures how people log in to the console other than by token: through an OpenID Connect provider, a trusted
// proxy, or both.
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
