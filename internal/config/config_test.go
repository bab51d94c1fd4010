package config_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// load loads the configuration with file as switchyard.toml, variables as "NAME=value".
func load(t *testing.T, file string, variables, flags []string) (*config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	env := map[string]string{"HOME": "/home/me", "SWITCHYARD_CONFIG": filepath.Join(dir, "switchyard.toml")}
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	if err := os.WriteFile(filepath.Join(dir, "switchyard.toml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.AddFlags(set)
	if err := set.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return config.Load(set, func(name string) string { return env[name] })
}

func TestDefaults(t *testing.T) {
	got, err := load(t, "", []string{"SWITCHYARD_LISTEN=", "SWITCHYARD_ADMIN_TOKEN=", "SWITCHYARD_ALLOW_HOSTS=", "SWITCHYARD_CONFIG="}, nil)
	want := &config.Config{
		Listen:          "localhost:3000",
		Data:            "/home/me/.local/share/switchyard",
		BotConfig:       "/home/me/.config/switchyard/bot.toml",
		Credentials:     "/home/me/.config/switchyard/credentials.json",
		LogFormat:       "text",
		LogLevel:        "info",
		PollInterval:    2 * time.Second,
		KeepEvents:      180 * 24 * time.Hour,
		PermissionRole:  "operator",
		Budgets:         domain.Budgets{Zone: time.UTC},
		UpstreamTimeout: 2 * time.Second,
		ToolTimeout:     time.Minute,
		AgentTimeout:    45 * time.Second,
		JoinTokenTTL:    time.Hour,
		SignIn: config.SignIn{
			ClientID: "switchyard", Product: "switchyard", TokenFormat: "json",
			Missing:    []string{"sign_in.authorize_url", "sign_in.token_url", "sign_in.client_id", "sign_in.product"},
			ConfigFile: "/home/me/.config/switchyard/switchyard.toml",
		},
		Login: config.Login{RolesClaim: "groups"},
		Bot:   config.Bot{TeamAPIURL: "https://slack.com/api/"},

		Notifications: config.Notifications{SMTPPort: 587, SMTPTLS: "starttls"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Load = %+v, %v; want %+v", got, err, want)
	}
}

func TestXDGDirectories(t *testing.T) {
	got, err := load(t, "", []string{"XDG_CONFIG_HOME=/xdg/config", "XDG_DATA_HOME=/xdg/data", "HOME="}, nil)
	if err != nil || got.Data != "/xdg/data/switchyard" || got.BotConfig != "/xdg/config/switchyard/bot.toml" || got.Credentials != "/xdg/config/switchyard/credentials.json" {
		t.Errorf("Load = %+v, %v", got, err)
	}
	got, err = load(t, "", []string{"XDG_CONFIG_HOME=relative", "XDG_DATA_HOME="}, nil)
	if err != nil || got.Data != "/home/me/.local/share/switchyard" || got.BotConfig != "/home/me/.config/switchyard/bot.toml" {
		t.Errorf("a relative or empty directory must not count; Load = %+v, %v", got, err)
	}
	if _, err = load(t, "", []string{"HOME="}, nil); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("without a home directory Load = %v, want --data named", err)
	}
	if _, err = load(t, "", []string{"HOME="}, []string{"--data=/d", "--bot-config=/b", "--credentials=/c"}); err != nil {
		t.Errorf("with all paths given, no home directory is needed: %v", err)
	}
}

func TestTheHomeDirectoryIsFoundOnWindows(t *testing.T) {
	got, err := load(t, "", []string{"HOME=", "USERPROFILE=/Users/me", "SWITCHYARD_CONFIG="}, nil)
	if err != nil || got.Data != "/Users/me/.local/share/switchyard" {
		t.Errorf("Load = %+v, %v", got, err)
	}
}

func TestTheStandardFileIsReadIfItExists(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "switchyard"), 0o700)
	os.WriteFile(filepath.Join(dir, "switchyard", "switchyard.toml"), []byte("gateway.poll_interval = '7s'"), 0o600)
	got, err := load(t, "", []string{"SWITCHYARD_CONFIG=", "XDG_CONFIG_HOME=" + dir}, nil)
	if err != nil || got.PollInterval != 7*time.Second || got.File != filepath.Join(dir, "switchyard", "switchyard.toml") {
		t.Errorf("Load = %+v, %v", got, err)
	}
}

func TestFlagOverEnvironmentOverFileOverDefault(t *testing.T) {
	const file = `
		[gateway]
		listen = "localhost:1"
		poll_interval = "1s"
		upstream_timeout = "1s"
		agent_timeout = "1s"
		allow_hosts = ["file.example"]
		data = "relative"
		[sign_in]
		client_id = "file"
		product = "file"
		credentials = "/file"
		[metrics]
		per_project = true`
	got, err := load(
		t, file,
		[]string{"SWITCHYARD_LISTEN=localhost:2", "SWITCHYARD_POLL_INTERVAL=2s", "SWITCHYARD_AGENT_TIMEOUT=", "SWITCHYARD_ALLOW_HOSTS= a.example, ,b.example ", "SWITCHYARD_OAUTH_CLIENT_ID=env", "SWITCHYARD_CREDENTIALS=/env"},
		[]string{"--listen=localhost:3", "--allow-host=c.example", "--allow-host=d.example", "--database=postgres://me:canary@db/yard"},
	)
	if err != nil {
		t.Fatal(err)
	}
	cwd, _ := os.Getwd()
	for name, c := range map[string]struct{ got, want any }{
		"flag":                    {got.Listen, "localhost:3"},
		"environment":             {got.PollInterval, 2 * time.Second},
		"file":                    {got.UpstreamTimeout, time.Second},
		"an empty variable":       {got.AgentTimeout, time.Second},
		"default":                 {got.JoinTokenTTL, time.Hour},
		"repeated flag":           {got.AllowHosts, []string{"c.example", "d.example"}},
		"variable without a flag": {got.SignIn.ClientID, "env"},
		"key below it":            {got.SignIn.Product, "file"},
		"credentials":             {got.Credentials, "/env"},
		"metrics of each project": {got.MetricsPerProject, true},
		"a database's password":   {fmt.Sprintf("%+v", got), strings.ReplaceAll(fmt.Sprintf("%+v", got), "canary", "")},
		"database":                {got.Database.Reveal(), "postgres://me:canary@db/yard"},
		"relative path":           {got.Data, filepath.Join(cwd, "relative")},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
	if got, err := load(t, file, []string{"SWITCHYARD_ALLOW_HOSTS= a.example, ,b.example "}, nil); err != nil || !slices.Equal(got.AllowHosts, []string{"a.example", "b.example"}) {
		t.Errorf("a list in a variable: %v, %v", got.AllowHosts, err)
	}
}

func TestEventsCanBeKeptForEver(t *testing.T) {
	for _, zero := range []string{"0", "0s"} {
		for where, load := range map[string]func() (*config.Config, error){
			"flag":     func() (*config.Config, error) { return load(t, "", nil, []string{"--keep-events=" + zero}) },
			"variable": func() (*config.Config, error) { return load(t, "", []string{"SWITCHYARD_KEEP_EVENTS=" + zero}, nil) },
			"file":     func() (*config.Config, error) { return load(t, "gateway.keep_events = '"+zero+"'", nil, nil) },
		} {
			if got, err := load(); err != nil || got.KeepEvents != 0 {
				t.Errorf("%s in a %s: %+v, %v", zero, where, got, err)
			}
		}
	}
	if got, err := load(t, "gateway.keep_events = 0", nil, nil); err != nil || got.KeepEvents != 0 {
		t.Errorf("the number 0 in a file: %+v, %v", got, err)
	}
	if _, err := load(t, "", nil, []string{"--keep-events=-1h"}); err == nil || !strings.Contains(err.Error(), "--keep-events") {
		t.Errorf("a negative duration: %v", err)
	}
}

func TestWaysToWriteTheFile(t *testing.T) {
	for name, file := range map[string]string{
		"tables":          "[gateway]\nlisten = 'localhost:1'\n[[projects]]\nname = ' a '\nurl = 'http://a'\n[[projects]]\nname = 'b'\nurl = 'http://b/x/'",
		"dotted keys":     "gateway.listen = 'localhost:1'\nprojects = [{name = 'a', url = 'http://a'}, {name = 'b', url = 'http://b/x/'}]",
		"inline tables":   "gateway = {listen = 'localhost:1'}\n[[projects]]\nurl = 'http://a'\nname = 'a'\n[[projects]]\nname = 'b'\nurl = 'http://b/x/'",
		"quoted, CRLF":    "[\"gateway\"]\r\n'listen' = '''localhost:1'''\r\n[[ projects ]]\r\nname = 'a'\r\nurl = 'http://a'\r\n[[projects]]\r\nname = 'b'\r\nurl = 'http://b/x/'\r\n",
		"byte-order mark": "\uFEFFgateway.listen = 'localhost:1'\nprojects = [{name = 'a', url = 'http://a'}, {name = 'b', url = 'http://b/x/'}]",
		"after a comment": "# é\n[gateway] # x\nlisten = \"local\\u0068ost:1\" # y\n[[projects]]\nname = 'a'\nurl = 'http://a'\n[[projects]]\nname = 'b'\nurl = 'http://b/x/'",
	} {
		got, err := load(t, file, nil, nil)
		want := []domain.Project{{Name: "a", URL: "http://a"}, {Name: "b", URL: "http://b/x/"}}
		if err != nil || got.Listen != "localhost:1" || !slices.Equal(got.Projects, want) {
			t.Errorf("%s: Load = %+v, %v", name, got, err)
		}
	}
}

func TestThePublicAddressIsAnAllowedHost(t *testing.T) {
	got, err := load(t, "[gateway]\npublic_url = 'https://yard.example:8443/'\nallow_hosts = ['other.example']", nil, nil)
	if err != nil || got.PublicURL != "https://yard.example:8443/" || !slices.Equal(got.AllowHosts, []string{"other.example", "yard.example"}) {
		t.Errorf("Load = %+v, %v", got, err)
	}
}

func TestTrustedProxiesAreNetworks(t *testing.T) {
	got, err := load(t, "login.trusted_proxies = ['10.1.2.3/8', 'fd00::/8', '192.0.2.1', '::1']", nil, nil)
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("::1/128")}
	if err != nil || !slices.Equal(got.Login.TrustedProxies, want) {
		t.Errorf("Load = %+v, %v", got, err)
	}
}

func TestWhatSignInLacksIsNamed(t *testing.T) {
	const file = "[sign_in]\nauthorize_url = 'https://a/'\nproduct = 'switchyard'\ntoken_format = 'form'\nscopes = ['openid', 'email']"
	got, err := load(t, file, []string{"SWITCHYARD_OAUTH_SCOPES="}, nil)
	if err != nil || !slices.Equal(got.SignIn.Missing, []string{"sign_in.token_url", "sign_in.client_id"}) || got.SignIn.ConfigFile != got.File || got.File == "" {
		t.Errorf("Load = %+v, %v", got, err)
	}
	if got.SignIn.TokenFormat != "form" || !slices.Equal(got.SignIn.Scopes, []string{"openid", "email"}) {
		t.Errorf("sign-in = %+v", got.SignIn)
	}
	got, err = load(t, file, []string{
		"SWITCHYARD_OAUTH_TOKEN_URL=https://b/", "SWITCHYARD_OAUTH_CLIENT_ID=c",
		"SWITCHYARD_OAUTH_TOKEN_FORMAT=json", "SWITCHYARD_OAUTH_SCOPES= openid  offline_access ",
	}, nil)
	if err != nil || got.SignIn.Missing != nil || got.SignIn.TokenFormat != "json" || !slices.Equal(got.SignIn.Scopes, []string{"openid", "offline_access"}) {
		t.Errorf("Load = %+v, %v", got, err)
	}
}

// TestManyProjectsAreReadAtOnce: for 10,000 projects, counting the lines before each took more than 5 s.
func TestManyProjectsAreReadAtOnce(t *testing.T) {
	var file strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&file, "[[projects]]\nname = 'project %d'\nurl = 'http://127.0.0.1:%d/'\n", i, 1+i)
	}
	began := waittest.CPUTime()
	got, err := load(t, file.String(), nil, nil)
	if took := waittest.CPUTime() - began; err != nil || len(got.Projects) != 10_000 || took > 3*time.Second {
		t.Errorf("%v, %v", took, err)
	}
	_, err = load(t, file.String()+"[[projects]]\nname = 'project 7'\nurl = 'http://a'\n", nil, nil)
	if err == nil || !strings.Contains(err.Error(), `:30002: projects.name: project "project 7" is listed twice`) {
		t.Errorf("a mistake at the end: %v", err)
	}
}

// TestTheReadmeNamesEveryFlag checks that the README lists every flag with its variable.
func TestTheReadmeNamesEveryFlag(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.AddFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		_, variable, _ := strings.Cut(strings.TrimSuffix(f.Usage, "]"), "[$")
		row := regexp.MustCompile("(?m)^\\| `--" + f.Name + "[ `].*`" + variable + "`")
		if variable == "" || !row.Match(readme) {
			t.Errorf("the table of settings in README.md has no row for --%s and its variable %q", f.Name, variable)
		}
	})
}

// The example must be valid both unchanged and with all settings uncommented, and have every key.
func TestTheExampleFile(t *testing.T) {
	data, err := os.ReadFile("../../switchyard.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := load(t, string(data), nil, nil)
	if err != nil || len(plain.Projects) > 0 {
		t.Errorf("as it is: %+v, %v", plain, err)
	}
	all := regexp.MustCompile(`(?m)^# ([a-z_"0-9.-]+ = |\[\[)`).ReplaceAllString(string(data), "$1")
	got, err := load(t, all, []string{"SWITCHYARD_ADMIN_TOKEN=x", "SWITCHYARD_LOGIN_CLIENT_SECRET=x", "SWITCHYARD_NOTIFICATIONS_SMTP_PASSWORD=x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ got, want any }{
		"listen": {got.Listen, plain.Listen}, "data": {got.Data, plain.Data}, "bot_config": {got.BotConfig, plain.BotConfig},
		"credentials": {got.Credentials, plain.Credentials}, "log_format": {got.LogFormat, plain.LogFormat}, "log_level": {got.LogLevel, plain.LogLevel},
		"poll_interval": {got.PollInterval, plain.PollInterval}, "upstream_timeout": {got.UpstreamTimeout, plain.UpstreamTimeout},
		"tool_timeout":  {got.ToolTimeout, plain.ToolTimeout},
		"agent_timeout": {got.AgentTimeout, plain.AgentTimeout}, "join_token_ttl": {got.JoinTokenTTL, plain.JoinTokenTTL},
		"team_api_url": {got.Bot.TeamAPIURL, plain.Bot.TeamAPIURL}, "token_format": {got.SignIn.TokenFormat, plain.SignIn.TokenFormat},
	} {
		if c.got != c.want {
			t.Errorf("%s: the example says %v, the default is %v", what, c.got, c.want)
		}
	}
	if unset, err := config.Unset(got.File); err != nil || len(unset) > 0 {
		t.Errorf("the example does not set %s, %v", unset, err)
	}
	v := reflect.ValueOf(*got)
	for i := range v.NumField() {
		if v.Field(i).IsZero() && v.Type().Field(i).Name != "Warnings" {
			t.Errorf("the example does not set %s", v.Type().Field(i).Name)
		}
	}
	if got.SignIn.AuthorizeURL == "" || got.SignIn.TokenURL == "" || got.SignIn.ClientID == "" || got.SignIn.Product == "" || len(got.SignIn.Scopes) == 0 || len(got.Bot.Operators) == 0 {
		t.Errorf("the example lacks something: %+v", got)
	}
}

func TestMailNeedsASenderAndReadsItsPassword(t *testing.T) {
	path := tokenFile(t, "two words\nmore", 0o600)
	got, err := load(t, "[notifications]\nsmtp_host = 'mail.example'\nsmtp_port = 465\nsmtp_from = 'Yard <y@example.org>'\nsmtp_password_file = '"+path+"'", []string{"SWITCHYARD_NOTIFICATIONS_SMTP_TLS=implicit", "SWITCHYARD_NOTIFICATIONS_ALLOW_PRIVATE=true"}, nil)
	if n := got.Notifications; err != nil || n.SMTPPort != 465 || n.SMTPPassword.Reveal() != "two words" || n.SMTPTLS != "implicit" || !n.AllowPrivate {
		t.Errorf("%+v, %v", got, err)
	}
	for file, says := range map[string]string{
		"notifications.smtp_host = 'mail.example'": ":1: notifications.smtp_host: needs notifications.smtp_from",
		"notifications.smtp_port = 0":              ":1: notifications.smtp_port: must be a port",
		"notifications.smtp_port = true":           ":1: notifications.smtp_port: must be a number",
		"notifications.smtp_port = '587'":          ":1: notifications.smtp_port: must be a number",
		"costs.day_usd = '5'":                      ":1: costs.day_usd: must be a number",
		"notifications.smtp_from = 'nobody'":       ":1: notifications.smtp_from: ",
		"notifications.smtp_tls = 'perhaps'":       ":1: notifications.smtp_tls: must be one of",
		"notifications.allow_private = 'yes'":      ":1: notifications.allow_private: must be true or false",
		"[notifications]\nsmtp_from = 'a@b.example'\nsmtp_password_file = '/nonexistent/password'": ":3: notifications.smtp_password_file: ",
	} {
		if _, err := load(t, file, nil, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", file, err, says)
		}
	}
}

// FuzzLoad: whatever file and variables say, the outcome is a configuration that keeps its promises, or one line.
func FuzzLoad(f *testing.F) {
	for _, file := range []string{
		"", "[gateway]\npoll_interval = '1ns'", "gateway.listen = ':'", "[[projects]]\nname = ' a '\nurl = 'http://a'", "[sign_in]\nproduct = 'a b'",
		"bot.operators = ['@a:b', '']", "[gateway]\nallow_hosts = ['a,b', '*']", "gateway.data = '~'", "projects = 7",
	} {
		f.Add(file, "1m30s", "127.0.0.1:0")
	}
	for _, duration := range []string{"0", "-1s", "1e9h", "9223372036854775807ns", "1", "soon", " 1s", "\n"} {
		f.Add("", duration, "localhost:3000")
	}
	for _, address := range []string{"[::1]:1", "::1", "0.0.0.0:1", "a:b:c", "localhost:http", "127.0.0.1:65536", "\x00:1"} {
		f.Add("", "1s", address)
	}
	f.Fuzz(func(t *testing.T, file, duration, address string) {
		c, err := load(t, file, []string{"SWITCHYARD_UPSTREAM_TIMEOUT=" + duration, "SWITCHYARD_LISTEN=" + address}, nil)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		if min(c.PollInterval, c.UpstreamTimeout, c.ToolTimeout, c.AgentTimeout, c.JoinTokenTTL) <= 0 {
			t.Errorf("durations: %+v", c)
		}
		if _, _, err := net.SplitHostPort(c.Listen); err != nil || !filepath.IsAbs(c.Data) || !filepath.IsAbs(c.BotConfig) || !filepath.IsAbs(c.Credentials) {
			t.Errorf("listen %q, paths: %+v", c.Listen, c)
		}
		for _, p := range c.Projects {
			if again, err := domain.NewProject(p.Name, p.URL); err != nil || again != p {
				t.Errorf("project %+v: %v", p, err)
			}
		}
	})
}
