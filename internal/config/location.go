package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

const (
	configVariable = "SWITCHYARD_CONFIG"
	standardFile   = "$XDG_CONFIG_HOME/switchyard/switchyard.toml"
)

// filePath returns the absolute path of the configuration file and what named it: nil for the default file. The path is ""
// when there is neither.
func filePath(flags *pflag.FlagSet, getenv func(string) string) (path string, from *given, err error) {
	g := given{named(configVariable), []string{getenv(configVariable)}}
	if flags.Changed("config") {
		g = given{named("--config"), []string{flags.Lookup("config").Value.String()}}
	}
	if g.values[0] == "" && !flags.Changed("config") {
		standard, ok := Expand(standardFile, getenv)
		if _, err := os.Stat(standard); !ok || errors.Is(err, fs.ErrNotExist) {
			return "", nil, nil
		}
		return standard, nil, nil
	}
	if err := isPath(&path)(g.values); err != nil {
		return "", nil, g.fail(err)
	}
	if _, err := os.Stat(path); err != nil {
		return "", nil, g.fail(err)
	}
	return path, &g, nil
}

// Expand replaces the XDG variable at the start of a default path. It returns false when the user has no home directory.
func Expand(path string, getenv func(string) string) (string, bool) {
	ok := true
	expanded := os.Expand(path, func(name string) string {
		if dir := getenv(name); filepath.IsAbs(dir) { // the XDG specification says to ignore relative ones
			return dir
		}
		home := getenv("HOME")
		ok = filepath.IsAbs(home)
		return filepath.Join(home, map[string]string{"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state"}[name])
	})
	return expanded, ok
}
