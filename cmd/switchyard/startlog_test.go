package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestTheLogBeginsAndEndsWithTheProgram: the first line says what runs, even if a warning came before, the last that it
// stopped.
func TestTheLogBeginsAndEndsWithTheProgram(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"gateway", "up"} {
		dir := t.TempDir()
		p := start(t, switchyard(t, dir, command, "--listen=localhost:0", "--data=DIR/data", "--log-format=json",
			"--upstream-timeout=1ms"))
		p.stop(t, os.Interrupt)
		lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
		var first map[string]string
		if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
			t.Fatalf("%s: %v in %q", command, err, lines[0])
		}
		if first["version"] != version() || first["address"] != p.url || !strings.HasSuffix(first["database"], "/data/switchyard.db") ||
			first["took"] == "" {
			t.Errorf("%s: the first line is %v", command, first)
		}
		if last := lines[len(lines)-1]; !strings.Contains(last, "Switchyard has stopped") {
			t.Errorf("%s: the last line is %s", command, last)
		}
	}
}
