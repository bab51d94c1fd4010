package config_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"switchyard/internal/config"
)

func loadProject(t *testing.T, variable string, flags ...string) (*config.Project, error) {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.AddProjectFlags(set)
	if err := set.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return config.LoadProject(set, func(name string) string {
		if name == "SWITCHYARD_PROJECT_TOKEN" {
			return variable
		}
		return ""
	})
}

func TestProjectServers(t *testing.T) {
	for name, test := range map[string]struct {
		variable string
		flags    []string
		want     config.Project
	}{
		"defaults":           {"", nil, config.Project{Listen: "127.0.0.1:3001"}},
		"variable":           {"from-env\n", nil, config.Project{Listen: "127.0.0.1:3001", Token: "from-env"}},
		"flag over variable": {"from-env", []string{"--token=from-flag"}, config.Project{Listen: "127.0.0.1:3001", Token: "from-flag"}},
		"beyond loopback":    {"x", []string{"--listen=:3001"}, config.Project{Listen: ":3001", Token: "x"}},
		"open to all":        {"", []string{"--listen=0.0.0.0:3001", "--allow-unauthenticated"}, config.Project{Listen: "0.0.0.0:3001"}},
		"loopback by name":   {"", []string{"--listen=localhost:0"}, config.Project{Listen: "localhost:0"}},
		"writes":             {"", []string{"--allow-writes"}, config.Project{Listen: "127.0.0.1:3001", AllowWrites: true}},
		"hosts":              {"", []string{"--allow-host=a.example", "--allow-host=b"}, config.Project{Listen: "127.0.0.1:3001", AllowHosts: []string{"a.example", "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.Name, test.want.Work = "alpha", "/work"
			got, err := loadProject(t, test.variable, append([]string{"--name= alpha ", "--work=/work"}, test.flags...)...)
			if err != nil || !reflect.DeepEqual(*got, test.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestMistakesInProjectServersNameTheirPlace(t *testing.T) {
	for name, test := range map[string]struct {
		variable, flags string
		names           string
		isFlag          bool
	}{
		"no name":                 {"", "--work=/work", "--name: must not be empty", true},
		"a name that is none":     {"", "--name=.. --work=/work", "--name: ", true},
		"no directory":            {"", "--name=a", "--work: must not be empty", true},
		"no address":              {"", "--name=a --work=/work --listen=3001", "--listen: ", true},
		"no host":                 {"", "--name=a --work=/work --allow-host=a/b", "--allow-host: ", true},
		"an empty token":          {"x", "--name=a --work=/work --token=", "--token: must not be empty", true},
		"a token that is none":    {"", "--name=a --work=/work --token=\u00e9", "--token: ", true},
		"a variable that is none": {"a b", "--name=a --work=/work", "SWITCHYARD_PROJECT_TOKEN: ", false},
		"open to the network":     {"", "--name=a --work=/work --listen=:3001", "--listen: :3001 can be reached from other machines", true},
		"open to a name":          {"", "--name=a --work=/work --listen=builder:3001", "--listen: ", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadProject(t, test.variable, strings.Fields(test.flags)...)
			var flag config.FlagError
			if err == nil || !strings.HasPrefix(err.Error(), test.names) || errors.As(err, &flag) != test.isFlag || strings.Contains(err.Error(), "a b") {
				t.Errorf("error %v", err)
			}
		})
	}
}
