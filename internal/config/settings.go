package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"
)

// setting is one thing that can be set, by every way in which it can be. Its flag, variable and default may be "".
type setting struct {
	flag, env, key string
	fallback       string // the default; may begin with an XDG variable
	usage          string
	list           bool // any number of values
	set            func(values []string) error
}

// settings is the table of all that can be set besides [[projects]]; the setters fill c.
func (c *Config) settings() []setting {
	return []setting{
		{
			flag: "listen", env: "SWITCHYARD_LISTEN", key: "gateway.listen", fallback: "localhost:3000",
			usage: "serve on `ADDR` (HOST:PORT)", set: isAddress(&c.Listen),
		},
		{
			flag: "data", env: "SWITCHYARD_DATA", key: "gateway.data", fallback: "$XDG_DATA_HOME/switchyard",
			usage: "keep the database in `DIR`", set: isPath(&c.Data),
		},
		{
			flag: "bot-config", env: "SWITCHYARD_BOT_CONFIG", key: "gateway.bot_config", fallback: "$XDG_CONFIG_HOME/switchyard/bot.toml",
			usage: "keep the chat bot's configuration in `FILE`", set: isPath(&c.BotConfig),
		},
		{
			flag: "credentials", env: "SWITCHYARD_CREDENTIALS", key: "sign_in.credentials", fallback: "$XDG_CONFIG_HOME/switchyard/credentials.json",
			usage: "keep the tokens of a sign-in in `FILE`", set: isPath(&c.Credentials),
		},
		{
			flag: "poll-interval", env: "SWITCHYARD_POLL_INTERVAL", key: "gateway.poll_interval", fallback: "2s",
			usage: "read feeds that cannot wait every `D`", set: isDuration(&c.PollInterval),
		},
		{
			flag: "upstream-timeout", env: "SWITCHYARD_UPSTREAM_TIMEOUT", key: "gateway.upstream_timeout", fallback: "2s",
			usage: "wait for a project server at most `D`", set: isDuration(&c.UpstreamTimeout),
		},
		{
			flag: "agent-timeout", env: "SWITCHYARD_AGENT_TIMEOUT", key: "gateway.agent_timeout", fallback: "45s",
			usage: "unlist an agent that was silent for `D`", set: isDuration(&c.AgentTimeout),
		},
		{
			flag: "join-token-ttl", env: "SWITCHYARD_JOIN_TOKEN_TTL", key: "gateway.join_token_ttl", fallback: "1h",
			usage: "let join tokens expire after `D`", set: isDuration(&c.JoinTokenTTL),
		},
		{
			flag: "admin-token-file", env: "SWITCHYARD_ADMIN_TOKEN_FILE", key: "gateway.admin_token_file",
			usage: "ask callers for the token in `FILE`; $SWITCHYARD_ADMIN_TOKEN, the token itself, wins", set: isPath(&c.adminTokenFile),
		},
		{
			flag: "allow-host", env: "SWITCHYARD_ALLOW_HOSTS", key: "gateway.allow_hosts", list: true,
			usage: "answer under the host name `H` too; may be repeated", set: isHosts(&c.AllowHosts),
		},
		{
			flag: "log-format", env: "SWITCHYARD_LOG_FORMAT", key: "gateway.log_format", fallback: "text",
			usage: "log as `FORMAT` (text or json)", set: isOneOf(&c.LogFormat, "text", "json"),
		},
		{
			flag: "log-level", env: "SWITCHYARD_LOG_LEVEL", key: "gateway.log_level", fallback: "info",
			usage: "log what is of `LEVEL` (debug, info, warn or error) or above; debug has every request", set: isOneOf(&c.LogLevel, "debug", "info", "warn", "error"),
		},
		{env: "SWITCHYARD_OAUTH_AUTHORIZE_URL", key: "sign_in.authorize_url", set: isURL(&c.SignIn.AuthorizeURL)},
		{env: "SWITCHYARD_OAUTH_TOKEN_URL", key: "sign_in.token_url", set: isURL(&c.SignIn.TokenURL)},
		{env: "SWITCHYARD_OAUTH_CLIENT_ID", key: "sign_in.client_id", set: isText(&c.SignIn.ClientID)},
		{env: "SWITCHYARD_OAUTH_PRODUCT", key: "sign_in.product", set: isWord(&c.SignIn.Product)},
		{key: "bot.operators", list: true, set: isTexts(&c.Bot.Operators)},
		{key: "bot.team_api_url", fallback: "https://slack.com/api/", set: isPlainURL(&c.Bot.TeamAPIURL)},
	}
}

// layers returns what the default, the file, the variable and the flag say, the strongest last.
func (s setting) layers(flags *pflag.FlagSet, getenv func(string) string, file *document) (all []given) {
	if value, ok := Expand(s.fallback, getenv); ok && s.fallback != "" {
		all = append(all, given{"default of " + s.key, []string{value}})
	}
	if g, ok := file.settings[s.key]; ok {
		all = append(all, g)
	}
	if value := getenv(s.env); s.env != "" && value != "" {
		values := []string{value}
		if s.list {
			values = splitList(value)
		}
		all = append(all, given{s.env, values})
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

// splitList splits at commas; empty elements do not count.
func splitList(text string) (values []string) {
	for value := range strings.SplitSeq(text, ",") {
		if value = strings.TrimSpace(value); value != "" {
			values = append(values, value)
		}
	}
	return values
}

var errEmpty = errors.New("must not be empty")

// isText and the functions below return the setter that checks a value and puts it where to points.
func isText(to *string) func([]string) error {
	return func(values []string) error {
		if values[0] == "" {
			return errEmpty
		}
		if strings.ContainsFunc(values[0], unicode.IsControl) {
			return errors.New("must not contain control characters")
		}
		*to = values[0]
		return nil
	}
}

func isTexts(to *[]string) func([]string) error {
	return func(values []string) error {
		*to = nil
		for _, value := range values {
			var text string
			if err := isText(&text)([]string{value}); err != nil {
				return err
			}
			*to = append(*to, text)
		}
		return nil
	}
}

// isWord: the value becomes a part of one scope, and scopes are separated by spaces.
func isWord(to *string) func([]string) error {
	return func(values []string) error {
		if strings.ContainsFunc(values[0], unicode.IsSpace) {
			return errors.New("must not contain spaces")
		}
		return isText(to)(values)
	}
}

func isPath(to *string) func([]string) error {
	return func(values []string) (err error) {
		if values[0] == "" {
			return errEmpty
		}
		if strings.ContainsRune(values[0], 0) {
			return errors.New("must not contain NUL")
		}
		*to, err = filepath.Abs(values[0])
		return err
	}
}

func isDuration(to *time.Duration) func([]string) error {
	return func(values []string) error {
		d, err := time.ParseDuration(values[0])
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 500ms, 2s or 1m30s", values[0])
		}
		if d < time.Millisecond {
			return errors.New("must be at least 1ms")
		}
		*to = d
		return nil
	}
}

func isOneOf(to *string, words ...string) func([]string) error {
	return func(values []string) error {
		if !slices.Contains(words, values[0]) {
			return errors.New("must be one of " + strings.Join(words, ", "))
		}
		*to = values[0]
		return nil
	}
}

func isAddress(to *string) func([]string) error {
	return func(values []string) error {
		host, port, err := net.SplitHostPort(values[0])
		if err != nil {
			return fmt.Errorf("%q is not HOST:PORT, such as localhost:3000 or [::1]:3000", values[0])
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return errors.New("the port must be a number from 0 to 65535")
		}
		if _, err := netip.ParseAddr(host); err != nil && host != "" && !hostName.MatchString(host) {
			return fmt.Errorf("%q is not a host name or IP address", host)
		}
		*to = net.JoinHostPort(strings.ToLower(host), port)
		return nil
	}
}

// onLoopback reports whether nobody beyond this machine can reach a listener on address.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// hostName is what a Host header can carry besides an IP address: at most 253 letters, digits, dots, hyphens, and the
// underscores that some networks have.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?\.?$`)

func isHosts(to *[]string) func([]string) error {
	return func(values []string) error {
		for _, value := range values {
			if _, err := netip.ParseAddr(value); err != nil && (!hostName.MatchString(value) || strings.Contains(value, "..")) {
				return fmt.Errorf("%q is not a host name (without scheme, port and wildcards; other scripts as xn--…)", value)
			}
		}
		*to = values
		return nil
	}
}

func isURL(to *string) func([]string) error {
	return func(values []string) error {
		u, err := url.Parse(values[0])
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
			return errors.New("must be an absolute http or https address")
		case u.User != nil || strings.Contains(values[0], "#"):
			return errors.New("must not contain a user name, a password or a fragment")
		}
		*to = values[0]
		return nil
	}
}

// isPlainURL: something will be appended to the address.
func isPlainURL(to *string) func([]string) error {
	return func(values []string) error {
		if strings.Contains(values[0], "?") {
			return errors.New("must not contain a query")
		}
		return isURL(to)(values)
	}
}
