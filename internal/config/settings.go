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
	setter
}

// withFlag is a setting whose flag and variable have the same name; a flag takes one value of a list.
func withFlag(key, variable, fallback string, set setter, usage string) setting {
	s := withVariable(key, variable, fallback, set)
	s.usage, s.flag = usage, strings.ToLower(strings.ReplaceAll(variable, "_", "-"))
	if s.kind.list() {
		s.flag = strings.TrimSuffix(s.flag, "s")
	}
	return s
}

func withVariable(key, variable, fallback string, set setter) setting {
	return setting{key: key, env: "SWITCHYARD_" + variable, fallback: fallback, setter: set}
}

func inFile(key, fallback string, set setter) setting {
	return setting{key: key, fallback: fallback, setter: set}
}

// settings is the table of all settings except [[projects]]; the setters fill c.
func (c *Config) settings() []setting {
	in, login, mail := &c.SignIn, &c.Login, &c.Notifications
	return []setting{
		withFlag("gateway.listen", "LISTEN", "localhost:3000", one(&c.Listen, parseAddress), "serve on `ADDR` (HOST:PORT)"),
		withFlag("gateway.data", "DATA", "$XDG_DATA_HOME/switchyard", one(&c.Data, parsePath), "keep the database in `DIR`"),
		withFlag("gateway.database", "DATABASE", "", one(&c.Database, ParseDatabase),
			"use the PostgreSQL database at `URL` (postgres://…) instead of --data; several gateways can share it"),
		withFlag("gateway.bot_config", "BOT_CONFIG", "$XDG_CONFIG_HOME/switchyard/bot.toml", one(&c.BotConfig, parsePath),
			"keep the chat bot's configuration in `FILE`"),
		withFlag("sign_in.credentials", "CREDENTIALS", "$XDG_CONFIG_HOME/switchyard/credentials.json",
			one(&c.Credentials, parsePath), "keep the tokens of a sign-in in `FILE`"),
		withFlag("gateway.poll_interval", "POLL_INTERVAL", "2s", one(&c.PollInterval, parseDuration),
			"poll project servers that do not support long-poll every `D`"),
		withFlag("gateway.upstream_timeout", "UPSTREAM_TIMEOUT", "2s", one(&c.UpstreamTimeout, parseDuration),
			"wait at most `D` for a project server"),
		withFlag("gateway.tool_timeout", "TOOL_TIMEOUT", "60s", one(&c.ToolTimeout, parseDuration),
			"wait at most `D` for a tool of a project's MCP server"),
		withFlag("gateway.agent_timeout", "AGENT_TIMEOUT", "45s", one(&c.AgentTimeout, parseDuration),
			"remove an agent from the list after `D` of silence"),
		withFlag("gateway.join_token_ttl", "JOIN_TOKEN_TTL", "1h", one(&c.JoinTokenTTL, parseDuration),
			"join tokens expire after `D`"),
		withFlag("gateway.keep_events", "KEEP_EVENTS", "4320h", orZero(&c.KeepEvents),
			"remove events after `D`, except the last 500 of each project; 0 keeps all"),
		withFlag("gateway.admin_token_file", "ADMIN_TOKEN_FILE", "", one(&c.adminTokenFile, parsePath),
			"require the admin token in `FILE`; $SWITCHYARD_ADMIN_TOKEN, the token itself, takes precedence"),
		withFlag("gateway.allow_hosts", "ALLOW_HOSTS", "", each(&c.AllowHosts, parseHost),
			"also answer to the host name `H`; may be repeated"),
		withFlag("gateway.allow_unauthenticated", "ALLOW_UNAUTHENTICATED", "false", on(&c.allowUnauthenticated),
			"serve other machines without an admin token or a login: everybody who can reach the port is an administrator"),
		withFlag("gateway.public_url", "PUBLIC_URL", "", one(&c.PublicURL, parseOrigin),
			"people reach the gateway at `URL`; its host name is allowed too"),
		withFlag("gateway.log_format", "LOG_FORMAT", "text", one(&c.LogFormat, oneOf("text", "json")),
			"log as `FORMAT` (text or json)"),
		withFlag("gateway.log_level", "LOG_LEVEL", "info", one(&c.LogLevel, oneOf("debug", "info", "warn", "error")),
			"log messages of `LEVEL` (debug, info, warn or error) and above; debug includes every request"),
		withFlag("metrics.per_project", "METRICS_PER_PROJECT", "false", on(&c.MetricsPerProject),
			"add separate series for each project to /metrics"),

		withVariable("sign_in.authorize_url", "OAUTH_AUTHORIZE_URL", "", one(&in.AuthorizeURL, parseURL)),
		withVariable("sign_in.token_url", "OAUTH_TOKEN_URL", "", one(&in.TokenURL, parseURL)),
		withVariable("sign_in.client_id", "OAUTH_CLIENT_ID", "switchyard", one(&in.ClientID, parseText)),
		withVariable("sign_in.product", "OAUTH_PRODUCT", "switchyard", one(&in.Product, parseWord)),
		withVariable("sign_in.token_format", "OAUTH_TOKEN_FORMAT", "json", one(&in.TokenFormat, oneOf("json", "form"))),
		withVariable("sign_in.scopes", "OAUTH_SCOPES", "", scopes(&in.Scopes)),
		inFile("login.issuer", "", one(&login.Issuer, parsePlainURL)),
		inFile("login.client_id", "", one(&login.ClientID, parseText)),
		inFile("login.client_secret_file", "", one(&login.clientSecretFile, parsePath)),
		inFile("login.roles_claim", "groups", one(&login.RolesClaim, parseText)),
		inFile("login.viewers", "", each(&login.Roles.Viewers, parseText)),
		inFile("login.operators", "", each(&login.Roles.Operators, parseText)),
		inFile("login.admins", "", each(&login.Roles.Admins, parseText)),
		inFile("login.trusted_proxies", "", each(&login.TrustedProxies, parseNetwork)),
		inFile("login.user_header", "", one(&login.UserHeader, parseHeaderName)),
		inFile("login.groups_header", "", one(&login.GroupsHeader, parseHeaderName)),
		inFile("questions.permission_role", "operator", one(&c.PermissionRole, oneOf("operator", "admin"))),
		withVariable("notifications.allow_private", "NOTIFICATIONS_ALLOW_PRIVATE", "false", on(&mail.AllowPrivate)),
		withVariable("notifications.smtp_host", "NOTIFICATIONS_SMTP_HOST", "", one(&mail.SMTPHost, parseHost)),
		withVariable("notifications.smtp_port", "NOTIFICATIONS_SMTP_PORT", "587", port(&mail.SMTPPort)),
		withVariable("notifications.smtp_from", "NOTIFICATIONS_SMTP_FROM", "", one(&mail.SMTPFrom, parseMailbox)),
		withVariable("notifications.smtp_username", "NOTIFICATIONS_SMTP_USERNAME", "", one(&mail.SMTPUsername, parseText)),
		withVariable("notifications.smtp_password_file", "NOTIFICATIONS_SMTP_PASSWORD_FILE", "",
			one(&mail.smtpPasswordFile, parsePath)),
		withVariable("notifications.smtp_tls", "NOTIFICATIONS_SMTP_TLS", "starttls",
			one(&mail.SMTPTLS, oneOf("starttls", "implicit", "none"))),
		inFile("costs.story_usd", "", usd(&c.Budgets.Story)),
		inFile("costs.day_usd", "", usd(&c.Budgets.Day)),
		inFile("costs.time_zone", "UTC", one(&c.Budgets.Zone, parseZone)),
		inFile("costs.stop", "false", on(&c.Budgets.Stop)),
		inFile("bot.operators", "", each(&c.Bot.Operators, parseText)),
		inFile("bot.team_api_url", "https://slack.com/api/", one(&c.Bot.TeamAPIURL, parsePlainURL)),
	}
}

// layers returns the values that are set by default, file, variable and flag, the strongest last.
func (s setting) layers(flags *pflag.FlagSet, getenv func(string) string, file *document) (all []input) {
	if value, ok := Expand(s.fallback, getenv); ok && s.fallback != "" {
		all = append(all, input{defaultOf + s.key, []string{value}})
	}
	if g, ok := file.settings[s.key]; ok {
		all = append(all, g)
	}
	if value := getenv(s.env); s.env != "" && value != "" {
		all = append(all, input{s.env, s.split(value)})
	}
	if s.flag == "" || !flags.Changed(s.flag) {
		return all
	}
	return append(all, fromFlag(flags, s.flag))
}

func fromFlag(flags *pflag.FlagSet, name string) input {
	value := flags.Lookup(name).Value
	if several, ok := value.(pflag.SliceValue); ok {
		return input{"--" + name, several.GetSlice()}
	}
	return input{"--" + name, []string{value.String()}}
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
