package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// AddFlags adds the gateway's flags with the given names to flags, or all of them when there are none.
func AddFlags(flags *pflag.FlagSet, names ...string) {
	flags.String("config", "", "read `FILE` (default \"$XDG_CONFIG_HOME/switchyard/switchyard.toml\", if it exists) "+
		"[$SWITCHYARD_CONFIG]")
	for _, s := range (&Config{}).settings() {
		if s.flag == "" || len(names) > 0 && !slices.Contains(names, s.flag) {
			continue
		}
		usage := fmt.Sprintf("%s [$%s]", s.usage, s.env)
		switch {
		case s.kind == boolKind:
			flags.Bool(s.flag, false, usage)
		case s.kind.list():
			flags.StringArray(s.flag, nil, usage)
		default:
			flags.String(s.flag, s.fallback, usage)
		}
	}
}

// Load reads the configuration from flags (to which AddFlags was applied), the environment and the file. An error is
// one line that names the flag (it is a FlagError then), the variable, or the file with line and key.
func Load(flags *pflag.FlagSet, getenv func(string) string) (*Config, error) {
	c := &Config{}
	last, err := c.load(flags, getenv, nil)
	switch {
	case err != nil:
		return nil, err
	case onLoopback(c.Listen):
	case c.AdminToken == "" && !c.Login.IsSetUp() && !c.allowUnauthenticated:
		return nil, last["gateway.listen"].fail(fmt.Errorf(
			"%s can be reached from other machines; set an admin token (--admin-token-file), a login, or "+
				"--allow-unauthenticated", c.Listen))
	case c.AdminToken != "" && len(c.AdminToken) < minAdminToken:
		return nil, last[adminTokenFile].fail(fmt.Errorf(
			"the admin token must have at least %d characters, as %s can be reached from other machines",
			minAdminToken, c.Listen))
	}
	if c.PublicURL != "" {
		public, _ := url.Parse(c.PublicURL) // the setter has parsed it
		c.AllowHosts = append(c.AllowHosts, public.Hostname())
	}
	for _, key := range []string{"sign_in.authorize_url", "sign_in.token_url", "sign_in.client_id", "sign_in.product"} {
		if from, ok := last[key]; !ok || from.isDefault() {
			c.SignIn.Missing = append(c.SignIn.Missing, key)
		}
	}
	if c.SignIn.ConfigFile = c.File; c.File == "" {
		if standard, ok := Expand(standardFile, getenv); ok {
			c.SignIn.ConfigFile = standard
		}
	}
	return c, nil
}

func (c *Config) OnLoopback() bool { return onLoopback(c.Listen) }

// LoadSome is Load for the settings with the given keys only, or below a table such as "login.", whose flags were
// applied. Nothing else is checked.
func LoadSome(flags *pflag.FlagSet, getenv func(string) string, keys ...string) (*Config, error) {
	c := &Config{}
	_, err := c.load(flags, getenv, keys)
	return c, err
}

const adminTokenFile = "gateway.admin_token_file"

// load reads the settings with these keys and the secrets that belong to them, or all when there are no keys. It
// returns the source that won, by key.
func (c *Config) load(flags *pflag.FlagSet, getenv func(string) string, keys []string) (
	last map[string]input, err error,
) {
	last, err = c.read(flags, getenv, keys)
	if err == nil && wantsKey(keys, adminTokenFile) {
		c.AdminToken, err = c.readSecret(adminTokenVariable, c.adminTokenFile, adminTokenFile, last, getenv)
	}
	if err == nil && wantsKey(keys, "login.client_secret_file") {
		err = c.readLogin(last, getenv)
	}
	if err == nil && wantsKey(keys, "notifications.smtp_password_file") {
		err = c.readMail(last, getenv)
	}
	return last, err
}

// wantsKey reports whether the setting with this key is among those with the keys that LoadSome takes.
func wantsKey(keys []string, key string) bool {
	table, _, _ := strings.Cut(key, ".")
	return len(keys) == 0 || slices.Contains(keys, key) || slices.Contains(keys, table+".")
}

// read sets the settings with the given keys, or all when there are none, from defaults, file, environment and flags.
// It returns the source that won, by key.
func (c *Config) read(flags *pflag.FlagSet, getenv func(string) string, keys []string) (map[string]input, error) {
	path, from, err := filePath(flags, getenv)
	if err != nil {
		return nil, err
	}
	file, settings := &document{}, c.settings()
	if path != "" {
		file, err = readFile(path, settings)
		if _, ok := errors.AsType[*fs.PathError](err); ok && from != nil {
			err = from.fail(err)
		}
		if err != nil {
			return nil, err
		}
		c.File, c.Projects, c.Prices = path, file.projects, file.prices
	}
	last := map[string]input{}
	for _, s := range settings {
		if !wantsKey(keys, s.key) {
			continue
		}
		for _, g := range s.layers(flags, getenv, file) {
			if err := s.set(g.values); err != nil {
				return nil, g.fail(err)
			}
			last[s.key] = g
		}
		if _, ok := last[s.key]; !ok && s.fallback != "" {
			return nil, fmt.Errorf("--%s: is required when HOME is not set", s.flag)
		}
	}
	return last, nil
}

const (
	configVariable = "SWITCHYARD_CONFIG"
	standardFile   = "$XDG_CONFIG_HOME/switchyard/switchyard.toml"
)

// filePath returns the absolute path of the configuration file and what named it: nil for the default file. The path is
// "" when there is neither.
func filePath(flags *pflag.FlagSet, getenv func(string) string) (path string, from *input, err error) {
	g := input{configVariable, []string{getenv(configVariable)}}
	if flags.Changed("config") {
		g = fromFlag(flags, "config")
	}
	if g.values[0] == "" && !flags.Changed("config") {
		standard, ok := Expand(standardFile, getenv)
		if _, err := os.Stat(standard); !ok || errors.Is(err, fs.ErrNotExist) {
			return "", nil, nil
		}
		return standard, nil, nil
	}
	if path, err = parsePath(g.values[0]); err != nil {
		return "", nil, g.fail(err)
	}
	if _, err := os.Stat(path); err != nil {
		return "", nil, g.fail(err)
	}
	return path, &g, nil
}

// Expand replaces the XDG variable at the start of a default path. It returns false when the user has no home
// directory.
func Expand(path string, getenv func(string) string) (string, bool) {
	ok := true
	expanded := os.Expand(path, func(name string) string {
		if dir := getenv(name); filepath.IsAbs(dir) { // the XDG specification says to ignore relative ones
			return dir
		}
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			home = getenv("USERPROFILE") // what Windows has
		}
		ok = filepath.IsAbs(home)
		return filepath.Join(home, map[string]string{
			"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share",
			"XDG_STATE_HOME": ".local/state",
		}[name])
	})
	return expanded, ok
}
