package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secret is an admin token that is long enough for every address.
const secret = "0123456789abcdefghij"

// tokenFile writes a file with a token and a mode.
func tokenFile(t *testing.T, text string, mode os.FileMode) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "token")
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheAdminTokenOfTheVariableWins(t *testing.T) {
	path := tokenFile(t, "of-the-file-"+secret+"\n", 0o600)
	got, err := load(t, "", nil, []string{"--admin-token-file", path, "--listen=:80"})
	if err != nil || got.AdminToken.Reveal() != "of-the-file-"+secret {
		t.Errorf("of the file: %+v, %v", got, err)
	}
	got, err = load(t, "", []string{"SWITCHYARD_ADMIN_TOKEN=of-the-variable-" + secret}, []string{"--admin-token-file", path, "--listen=0.0.0.0:80"})
	if err != nil || got.AdminToken.Reveal() != "of-the-variable-"+secret {
		t.Errorf("of the variable: %+v, %v", got, err)
	}
}

func TestAShortAdminTokenGuardsLoopbackOnly(t *testing.T) {
	short := secret[1:]
	path := tokenFile(t, short, 0o600)
	for name, c := range map[string]struct {
		file             string
		variables, flags []string
		says             string // "" for a start
	}{
		"on loopback":          {"", []string{"SWITCHYARD_ADMIN_TOKEN=" + short}, nil, ""},
		"long enough":          {"", []string{"SWITCHYARD_ADMIN_TOKEN=" + secret}, []string{"--listen=:80"}, ""},
		"in the variable":      {"", []string{"SWITCHYARD_ADMIN_TOKEN=" + short}, []string{"--listen=:80"}, "SWITCHYARD_ADMIN_TOKEN: the admin token must have at least 20 characters"},
		"in the flag's file":   {"", nil, []string{"--listen=:80", "--admin-token-file=" + path}, "--admin-token-file: the admin token must have at least 20 characters"},
		"in the key's file":    {"gateway.admin_token_file = '" + path + "'", nil, []string{"--listen=:80"}, "switchyard.toml:1: gateway.admin_token_file: the admin token must have"},
		"open to all besides":  {"", []string{"SWITCHYARD_ADMIN_TOKEN=" + short}, []string{"--listen=:80", "--allow-unauthenticated"}, "SWITCHYARD_ADMIN_TOKEN: the admin token must have"},
		"an IPv6 address of a": {"", []string{"SWITCHYARD_ADMIN_TOKEN=" + short}, []string{"--listen=[2001:db8::1]:80"}, "SWITCHYARD_ADMIN_TOKEN: "},
	} {
		_, err := load(t, c.file, c.variables, c.flags)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), short)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func TestATokenFileThatOthersCanReadWarns(t *testing.T) {
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o644: true, 0o604: true} {
		path := tokenFile(t, secret, mode)
		got, err := load(t, "", nil, []string{"--admin-token-file", path})
		if err != nil || (len(got.Warnings) == 1) != warns {
			t.Fatalf("mode %o: %+v, %v", mode, got, err)
		}
		if warns && (!strings.Contains(got.Warnings[0], path) || strings.Contains(got.Warnings[0], secret)) {
			t.Errorf("mode %o: %q", mode, got.Warnings)
		}
		if got, err := load(t, "", []string{"CREDENTIALS_DIRECTORY=" + filepath.Dir(path)}, []string{"--admin-token-file", path}); err != nil || len(got.Warnings) > 0 {
			t.Errorf("mode %o as a credential of a service: %+v, %v", mode, got, err)
		}
	}
}

func TestAnAddressBeyondThisMachineCanBeLeftOpen(t *testing.T) {
	for name, c := range map[string]struct {
		file             string
		variables, flags []string
		opens            bool
	}{
		"flag":                   {"", nil, []string{"--allow-unauthenticated"}, true},
		"variable":               {"", []string{"SWITCHYARD_ALLOW_UNAUTHENTICATED=true"}, nil, true},
		"key":                    {"gateway.allow_unauthenticated = true", nil, nil, true},
		"flag over variable":     {"", []string{"SWITCHYARD_ALLOW_UNAUTHENTICATED=true"}, []string{"--allow-unauthenticated=false"}, false},
		"variable over the file": {"gateway.allow_unauthenticated = true", []string{"SWITCHYARD_ALLOW_UNAUTHENTICATED=false"}, nil, false},
		"default":                {"", nil, nil, false},
	} {
		got, err := load(t, c.file, c.variables, append(c.flags, "--listen=0.0.0.0:80"))
		if (err == nil) != c.opens || c.opens && got.AdminToken != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestLoopbackAddressesNeedNoToken(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:0": "127.0.0.1:0", "[::1]:3000": "[::1]:3000", "127.1.2.3:1": "127.1.2.3:1", "LocalHost:3000": "localhost:3000", "[::ffff:127.0.0.1]:1": "[::ffff:127.0.0.1]:1",
	} {
		got, err := load(t, "", nil, []string{"--listen", address})
		if err != nil || got.Listen != want {
			t.Errorf("%s: %v, %v", address, got, err)
		}
	}
}
