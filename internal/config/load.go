package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"

	"github.com/spf13/pflag"

	"switchyard/internal/domain"
)

// AddFlags adds the gateway's flags to flags.
func AddFlags(flags *pflag.FlagSet) { addFlags(flags) }

// addFlags adds the gateway's flags with the given names to flags, or all of them when there are none.
func addFlags(flags *pflag.FlagSet, names ...string) {
	flags.String("config", "", "read `FILE` (default \"$XDG_CONFIG_HOME/switchyard/switchyard.toml\", if it exists) [$SWITCHYARD_CONFIG]")
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

// Load reads the configuration from flags (to which AddFlags was applied), the environment and the file. An error is one
// line that names the flag (it is a FlagError then), the variable, or the file with line and key.
func Load(flags *pflag.FlagSet, getenv func(string) string) (*Config, error) {
	c := &Config{}
	last, err := c.read(c.settings(), flags, getenv)
	if err != nil {
		return nil, err
	}
	tokenFrom, err := c.readAdminToken(last["gateway.admin_token_file"], getenv)
	if err == nil {
		err = c.readLogin(last, getenv)
	}
	switch {
	case err != nil:
		return nil, err
	case onLoopback(c.Listen):
	case c.AdminToken == "" && !c.Login.IsSetUp() && !c.allowUnauthenticated:
		return nil, last["gateway.listen"].fail(fmt.Errorf("%s can be reached from other machines; set an admin token (--admin-token-file), a login, or --allow-unauthenticated", c.Listen))
	case c.AdminToken != "" && len(c.AdminToken) < minAdminToken:
		return nil, tokenFrom.fail(fmt.Errorf("the admin token must have at least %d characters, as %s can be reached from other machines", minAdminToken, c.Listen))
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

// AddDataFlags adds the gateway's flags that LoadData reads.
func AddDataFlags(flags *pflag.FlagSet) {
	addFlags(flags, "data")
}

// AddStoreFlags adds the gateway's flags that LoadStore reads.
func AddStoreFlags(flags *pflag.FlagSet) {
	addFlags(flags, "data", "database")
}

// LoadStore returns the gateway's data directory and, if one is configured, the address of the PostgreSQL database that it
// uses instead. AddStoreFlags must have been applied to flags. Errors are those of Load.
func LoadStore(flags *pflag.FlagSet, getenv func(string) string) (dir string, database domain.Secret, err error) {
	c := &Config{}
	_, err = c.read(c.settings(), flags, getenv, "gateway.data", "gateway.database")
	return c.Data, c.Database, err
}

// LoadData returns the gateway's data directory. AddDataFlags must have been applied to flags. Errors are those of Load.
func LoadData(flags *pflag.FlagSet, getenv func(string) string) (dir string, err error) {
	c := &Config{}
	_, err = c.read(c.settings(), flags, getenv, "gateway.data")
	return c.Data, err
}

// read sets the settings with the given keys, or all when there are none, from defaults, file, environment and flags. It
// returns by key the source that won.
func (c *Config) read(settings []setting, flags *pflag.FlagSet, getenv func(string) string, keys ...string) (map[string]given, error) {
	path, from, err := filePath(flags, getenv)
	if err != nil {
		return nil, err
	}
	file := &document{}
	if path != "" {
		file, err = readFile(path, settings)
		var unread *fs.PathError
		if errors.As(err, &unread) && from != nil {
			err = from.fail(err)
		}
		if err != nil {
			return nil, err
		}
		c.File, c.Projects = path, file.projects
	}
	last := map[string]given{}
	for _, s := range settings {
		if len(keys) > 0 && !slices.Contains(keys, s.key) {
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

// AddListenFlags adds the gateway's flags that LoadListen reads.
func AddListenFlags(flags *pflag.FlagSet) {
	addFlags(flags, "listen")
}

// LoadListen returns the address that the gateway listens on. AddListenFlags must have been applied to flags. Errors are
// those of Load.
func LoadListen(flags *pflag.FlagSet, getenv func(string) string) (address string, err error) {
	c := &Config{}
	_, err = c.read(c.settings(), flags, getenv, "gateway.listen")
	return c.Listen, err
}
