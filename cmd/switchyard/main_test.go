package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr string // what each holds
	}{
		{"version", 0, "switchyard " + version(), ""},
		{"help", 0, "Available Commands", ""},
		{"help version", 0, "Print the version", ""},
		{"--help", 0, "Available Commands", ""},
		{"version --help", 0, "Print the version", ""},
		{"help nosuch", 2, "", `unknown command "nosuch"`},
		{"completion bash", 0, "__complete", ""},
		{"completion zsh", 0, "__complete", ""},
		{"completion fish", 0, "__complete", ""},
		{"completion powershell", 0, "__complete", ""},
		{"completion tcsh", 2, "", "bash, fish, powershell, zsh"},
		{"completion", 2, "", "bash, fish, powershell, zsh"},
		{"", 2, "", "missing command"},
		{"nosuch", 2, "", `unknown command "nosuch"`},
		{"versio", 2, "", `unknown command "versio"; did you mean version?`},
		{"projct --name alpha --work .", 2, "", `unknown command "projct"; did you mean project?`},
		{"gateway --liste=x", 2, "", "unknown flag: --liste; did you mean --listen?"},
		{"--version", 0, "switchyard " + version(), ""},
		{"__complete gateway x", 0, ":4\n", ""}, // no files
		{"__complete up x", 0, ":16\n", ""},     // directories
		{"__complete gateway --data x", 0, ":16\n", ""},
		{"__complete backup x", 0, ":0\n", ""}, // files
		{"backup", 2, "", "missing FILE, or DIR with --keep N"},
		{"backup one two", 2, "", `"two" is one argument too many`},
		{"backup --keep x DIR", 2, "", `switchyard: --keep: "x" is not a whole number`},
		{"up --create=x", 2, "", `switchyard: --create: "x" is not true or false`},
		{"backup --data= x", 2, "", "--data: must not be empty"},
		{"backup --data=/nonexistent x", 1, "", "/nonexistent/switchyard.db: no such file"},
		{"backup --database=postgres://db/x copy.db", 1, "", "pg_dump"},
		{"backup --data=/nonexistent postgres://db/x", 1, "", "pg_dump"},
		{"migrate", 2, "", "--to: must be an address that begins with postgres://"},
		{"migrate --to=http://db/x", 2, "", "--to: must be an address that begins with postgres://"},
		{"migrate --to=postgres://u:pa%ss@db/x", 2, "", "--to: has a % that no two hexadecimal digits follow: write %25 for a % in the password"},
		{"migrate --to=postgres://db/x?sslmode=foo", 2, "", "--to: failed to configure TLS (sslmode is invalid)"},
		{"migrate --to=postgres://db/x extra", 2, "", `"extra"`},
		{"migrate --to=postgres://db/x --data=/nonexistent", 1, "", "no database /nonexistent/switchyard.db"},
		{"agent --gateway=http://yard? --state=/dev/null/x", 2, "", "--gateway must be an address"},
		{"agent --gateway=http://yard/# --state=/dev/null/x", 2, "", "--gateway must be an address"},
		{"version extra", 2, "", `"extra"`},
		{"version --nosuch", 2, "", "unknown flag: --nosuch"},
		{"--nosuch", 2, "", "unknown flag: --nosuch"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			status := run(t.Context(), strings.Fields(c.args), strings.NewReader(""), &stdout, &stderr)
			if status != c.status || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("status %d, want %d\nstdout: %s\nstderr: %s", status, c.status, &stdout, &stderr)
			}
			if c.status != 0 && (strings.Count(stderr.String(), "\n") != 1 || stdout.Len() > 0) {
				t.Errorf("a failure must be one line on stderr and nothing else, got %q and %q", &stderr, &stdout)
			}
		})
	}
}
