package config

import (
	"strings"

	"github.com/spf13/pflag"
)

// setting describes a setting and its sources. Its flag, variable and default may be "".
type setting struct {
	flag, env, key string
	fallback       string // the default; may begin with an XDG variable
	usage          string
	kind           kind
	set            setter
}

// kind is how a setting is written.
type kind int

const (
	textKind   kind = iota
	zeroKind        // a text, or the number 0
	numberKind      // a number, or the same as a text
	boolKind        // true or false; its flag needs no value
	commaList       // an array in the file, in its variable with commas between
	spaceList       // an array in the file, in its variable with spaces between
)

func (k kind) list() bool { return k == commaList || k == spaceList }

// settings is the table of all settings except [[projects]]; the setters fill c.
func (c *Config) settings() []setting {
	return []setting{
		{
			flag: "listen", env: "SWITCHYARD_LISTEN", key: "gateway.listen", fallback: "localhost:3000",
			usage: "serve on `ADDR` (HOST:PORT)", set: one(&c.Listen, parseAddress),
		},
		{
			flag: "data", env: "SWITCHYARD_DATA", key: "gateway.data", fallback: "$XDG_DATA_HOME/switchyard",
			usage: "keep the database in `DIR`", set: one(&c.Data, parsePath),
		},
		{
			flag: "database", env: "SWITCHYARD_DATABASE", key: "gateway.database",
			usage: "use the PostgreSQL database at `URL` (postgres://…) instead of --data; several gateways can share it",
			set:   one(&c.Database, ParseDatabase),
		},
		{
			flag: "bot-config", env: "SWITCHYARD_BOT_CONFIG", key: "gateway.bot_config",
			fallback: "$XDG_CONFIG_HOME/switchyard/bot.toml",
			usage:    "keep the chat bot's configuration in `FILE`", set: one(&c.BotConfig, parsePath),
		},
		{
			flag: "credentials", env: "SWITCHYARD_CREDENTIALS", key: "sign_in.credentials",
			fallback: "$XDG_CONFIG_HOME/switchyard/credentials.json",
			usage:    "keep the tokens of a sign-in in `FILE`", set: one(&c.Credentials, parsePath),
		},
		{
			flag: "poll-interval", env: "SWITCHYARD_POLL_INTERVAL", key: "gateway.poll_interval", fallback: "2s",
			usage: "poll project servers that do not support long-poll every `D`", set: one(&c.PollInterval, parseDuration),
		},
		{
			flag: "upstream-timeout", env: "SWITCHYARD_UPSTREAM_TIMEOUT", key: "gateway.upstream_timeout", fallback: "2s",
			usage: "wait at most `D` for a project server", set: one(&c.UpstreamTimeout, parseDuration),
		},
		{
			flag: "tool-timeout", env: "SWITCHYARD_TOOL_TIMEOUT", key: "gateway.tool_timeout", fallback: "60s",
			usage: "wait at most `D` for a tool of a project's MCP server", set: one(&c.ToolTimeout, parseDuration),
		},
		{
			flag: "agent-timeout", env: "SWITCHYARD_AGENT_TIMEOUT", key: "gateway.agent_timeout", fallback: "45s",
			usage: "remove an agent from the list after `D` of silence", set: one(&c.AgentTimeout, parseDuration),
		},
		{
			flag: "join-token-ttl", env: "SWITCHYARD_JOIN_TOKEN_TTL", key: "gateway.join_token_ttl", fallback: "1h",
			usage: "join tokens expire after `D`", set: one(&c.JoinTokenTTL, parseDuration),
		},
		{
			flag: "keep-events", env: "SWITCHYARD_KEEP_EVENTS", key: "gateway.keep_events", kind: zeroKind, fallback: "4320h",
			usage: "remove events after `D`, except the last 500 of each project; 0 keeps all",
			set:   one(&c.KeepEvents, parseDurationOrZero),
		},
		{
			flag: "admin-token-file", env: "SWITCHYARD_ADMIN_TOKEN_FILE", key: "gateway.admin_token_file",
			usage: "require the admin token in `FILE`; $SWITCHYARD_ADMIN_TOKEN, the token itself, takes precedence",
			set:   one(&c.adminTokenFile, parsePath),
		},
		{
			flag: "allow-host", env: "SWITCHYARD_ALLOW_HOSTS", key: "gateway.allow_hosts", kind: commaList,
			usage: "also answer to the host name `H`; may be repeated", set: each(&c.AllowHosts, parseHost),
		},
		{
			flag: "allow-unauthenticated", env: "SWITCHYARD_ALLOW_UNAUTHENTICATED", key: "gateway.allow_unauthenticated",
			fallback: "false", kind: boolKind,
			usage: "serve other machines without an admin token or a login: everybody who can reach the port is an " +
				"administrator",
			set: one(&c.allowUnauthenticated, parseBool),
		},
		{
			flag: "public-url", env: "SWITCHYARD_PUBLIC_URL", key: "gateway.public_url",
			usage: "people reach the gateway at `URL`; its host name is allowed too", set: one(&c.PublicURL, parseOrigin),
		},
		{
			flag: "log-format", env: "SWITCHYARD_LOG_FORMAT", key: "gateway.log_format", fallback: "text",
			usage: "log as `FORMAT` (text or json)", set: one(&c.LogFormat, oneOf("text", "json")),
		},
		{
			flag: "log-level", env: "SWITCHYARD_LOG_LEVEL", key: "gateway.log_level", fallback: "info",
			usage: "log messages of `LEVEL` (debug, info, warn or error) and above; debug includes every request",
			set:   one(&c.LogLevel, oneOf("debug", "info", "warn", "error")),
		},
		{
			flag: "metrics-per-project", env: "SWITCHYARD_METRICS_PER_PROJECT", key: "metrics.per_project",
			fallback: "false", kind: boolKind,
			usage: "add separate series for each project to /metrics", set: one(&c.MetricsPerProject, parseBool),
		},
		{env: "SWITCHYARD_OAUTH_AUTHORIZE_URL", key: "sign_in.authorize_url", set: one(&c.SignIn.AuthorizeURL, parseURL)},
		{env: "SWITCHYARD_OAUTH_TOKEN_URL", key: "sign_in.token_url", set: one(&c.SignIn.TokenURL, parseURL)},
		{
			env: "SWITCHYARD_OAUTH_CLIENT_ID", key: "sign_in.client_id", fallback: "switchyard",
			set: one(&c.SignIn.ClientID, parseText),
		},
		{
			env: "SWITCHYARD_OAUTH_PRODUCT", key: "sign_in.product", fallback: "switchyard",
			set: one(&c.SignIn.Product, parseWord),
		},
		{
			env: "SWITCHYARD_OAUTH_TOKEN_FORMAT", key: "sign_in.token_format", fallback: "json",
			set: one(&c.SignIn.TokenFormat, oneOf("json", "form")),
		},
		{env: "SWITCHYARD_OAUTH_SCOPES", key: "sign_in.scopes", kind: spaceList, set: scopes(&c.SignIn.Scopes)},
		{key: "login.issuer", set: one(&c.Login.Issuer, parsePlainURL)},
		{key: "login.client_id", set: one(&c.Login.ClientID, parseText)},
		{key: "login.client_secret_file", set: one(&c.Login.clientSecretFile, parsePath)},
		{key: "login.roles_claim", fallback: "groups", set: one(&c.Login.RolesClaim, parseText)},
		{key: "login.viewers", kind: commaList, set: each(&c.Login.Roles.Viewers, parseText)},
		{key: "login.operators", kind: commaList, set: each(&c.Login.Roles.Operators, parseText)},
		{key: "login.admins", kind: commaList, set: each(&c.Login.Roles.Admins, parseText)},
		{key: "login.trusted_proxies", kind: commaList, set: each(&c.Login.TrustedProxies, parseNetwork)},
		{key: "login.user_header", set: one(&c.Login.UserHeader, parseHeaderName)},
		{key: "login.groups_header", set: one(&c.Login.GroupsHeader, parseHeaderName)},
		{key: "questions.permission_role", fallback: "operator", set: one(&c.PermissionRole, oneOf("operator", "admin"))},
		{
			env: "SWITCHYARD_NOTIFICATIONS_ALLOW_PRIVATE", key: "notifications.allow_private", fallback: "false",
			kind: boolKind, set: one(&c.Notifications.AllowPrivate, parseBool),
		},
		{
			env: "SWITCHYARD_NOTIFICATIONS_SMTP_HOST", key: "notifications.smtp_host",
			set: one(&c.Notifications.SMTPHost, parseHost),
		},
		{
			env: "SWITCHYARD_NOTIFICATIONS_SMTP_PORT", key: "notifications.smtp_port", kind: numberKind, fallback: "587",
			set: one(&c.Notifications.SMTPPort, parsePort),
		},
		{
			env: "SWITCHYARD_NOTIFICATIONS_SMTP_FROM", key: "notifications.smtp_from",
			set: one(&c.Notifications.SMTPFrom, parseMailbox),
		},
		{
			env: "SWITCHYARD_NOTIFICATIONS_SMTP_USERNAME", key: "notifications.smtp_username",
			set: one(&c.Notifications.SMTPUsername, parseText),
		},
		{
			env: "SWITCHYARD_NOTIFICATIONS_SMTP_PASSWORD_FILE", key: "notifications.smtp_password_file",
			set: one(&c.Notifications.smtpPasswordFile, parsePath),
		},
		{
			env: "SWITCHYARD_NOTIFICATIONS_SMTP_TLS", key: "notifications.smtp_tls", fallback: "starttls",
			set: one(&c.Notifications.SMTPTLS, oneOf("starttls", "implicit", "none")),
		},
		{key: "bot.operators", kind: commaList, set: each(&c.Bot.Operators, parseText)},
		{key: "bot.team_api_url", fallback: "https://slack.com/api/", set: one(&c.Bot.TeamAPIURL, parsePlainURL)},
	}
}

// layers returns the values from default, file, variable and flag, those that are set, the strongest last.
func (s setting) layers(flags *pflag.FlagSet, getenv func(string) string, file *document) (all []given) {
	if value, ok := Expand(s.fallback, getenv); ok && s.fallback != "" {
		all = append(all, given{defaultOf + s.key, []string{value}})
	}
	if g, ok := file.settings[s.key]; ok {
		all = append(all, g)
	}
	if value := getenv(s.env); s.env != "" && value != "" {
		all = append(all, given{s.env, s.split(value)})
	}
	if s.flag == "" || !flags.Changed(s.flag) {
		return all
	}
	values := []string{flags.Lookup(s.flag).Value.String()}
	if several, ok := flags.Lookup(s.flag).Value.(pflag.SliceValue); ok {
		values = several.GetSlice()
	}
	return append(all, given{"--" + s.flag, values})
}

func (s setting) split(text string) (values []string) {
	switch s.kind {
	case spaceList:
		return strings.Fields(text)
	case commaList:
		for value := range strings.SplitSeq(text, ",") {
			if value = strings.TrimSpace(value); value != "" {
				values = append(values, value)
			}
		}
		return values
	}
	return []string{text}
}
