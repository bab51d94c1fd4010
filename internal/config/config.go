// Package config gathers and checks the settings: flags override environment variables, which override the TOML file,
// which overrides the defaults. A mistake is reported in one line that says where it is. The package starts nothing and
// writes nothing.
package config

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// Config is the gateway's configuration. Every value has been checked; paths are absolute, durations positive.
type Config struct {
	File   string // the configuration file, "" when there is none
	Listen string // HOST:PORT
	Data   string // directory
	// Database is the address of a PostgreSQL database, which several gateways can share; it may hold a password. "" means
	// the SQLite database in Data.
	Database    domain.Secret
	BotConfig   string // file
	Credentials string // file
	LogFormat   string // text or json
	LogLevel    string // debug, info, warn or error

	PollInterval    time.Duration
	PermissionRole  string        // who may answer questions for a permission
	KeepEvents      time.Duration // 0: forever
	UpstreamTimeout time.Duration
	ToolTimeout     time.Duration
	AgentTimeout    time.Duration
	JoinTokenTTL    time.Duration

	AdminToken domain.Secret // "" for none
	AllowHosts []string      // including the host of PublicURL
	PublicURL  string        // where people reach the gateway, "" when unknown

	MetricsPerProject bool // separate series for each project in /metrics

	SignIn SignIn
	Login  Login
	Bot    Bot

	Notifications Notifications

	// Projects are registered when the gateway starts with an empty registry; the first becomes the active one.
	Projects []domain.Project

	// Prices are those of models whose clients do not say what a call costs.
	Prices map[string]domain.Price
	// Budgets are the most that people want models to cost.
	Budgets domain.Budgets

	// Warnings are problems that do not prevent a start but should be fixed, one line each.
	Warnings []string

	adminTokenFile       string
	allowUnauthenticated bool
}

// SignIn describes the identity provider and the gateway's registration there.
type SignIn struct {
	AuthorizeURL string // where browsers are sent, any query kept; "" for the page that lists what is missing
	TokenURL     string // where codes are exchanged; without it every sign-in fails
	ClientID     string
	Product      string   // part of the scope user:sessions:<product>_code
	TokenFormat  string   // of the code exchange: json, an object, or form
	Scopes       []string // nil for the default five

	Missing    []string // the keys of required settings that are not set
	ConfigFile string   // the file to set them in, which need not exist; "" when the user has no home directory
}

// Bot holds those settings of the chat bot that are not in its own file.
type Bot struct {
	Operators  []string // user ids
	TeamAPIURL string
}

// Notifications says where messages may be sent, and which server sends mail.
type Notifications struct {
	AllowPrivate bool   // addresses of private networks
	SMTPHost     string // "" for none
	SMTPPort     int
	SMTPFrom     string
	SMTPUsername string // "" to send without
	SMTPPassword domain.Secret
	SMTPTLS      string // starttls, implicit or none

	smtpPasswordFile string
}

type FlagError struct{ error }

// input is the value of a setting from one source.
type input struct {
	source string // the flag, the variable, or the file with its line and key
	values []string
}

func (g input) fail(err error) error {
	err = fmt.Errorf("%s: %w", g.source, err)
	if strings.HasPrefix(g.source, "--") {
		return FlagError{err}
	}
	return err
}

const defaultOf = "default of "

func (g input) isDefault() bool { return strings.HasPrefix(g.source, defaultOf) }

const loginSecretVariable = "SWITCHYARD_LOGIN_CLIENT_SECRET"

// Login configures how people log in to the console other than by token: through an OpenID Connect provider, a trusted
// proxy, or both.
type Login struct {
	Issuer       string        // the provider's issuer, "" for none
	ClientID     string        // set whenever Issuer is
	ClientSecret domain.Secret // "" for a public client
	RolesClaim   string        // the claim with the user's groups
	Roles        domain.RoleLists

	TrustedProxies []netip.Prefix // networks whose X-Forwarded-For and headers below are trusted
	UserHeader     string         // names the user; "" when the proxies authenticate nobody
	GroupsHeader   string         // has groups, separated by commas; "" for none

	clientSecretFile string
}

func (l Login) HasProxyLogin() bool { return l.UserHeader != "" && len(l.TrustedProxies) > 0 }

// IsSetUp reports whether people can log in without the admin token.
func (l Login) IsSetUp() bool { return l.Issuer != "" || l.HasProxyLogin() }
