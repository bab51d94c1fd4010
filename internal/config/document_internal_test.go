package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzReadFile: reading any file results in a document or a one-line error that names the file.
func FuzzReadFile(f *testing.F) {
	for _, text := range []string{
		"[gateway]\nlisten = 'localhost:1'\nallow_hosts = ['a', 'b']", "gateway = {data = 'a', x.y = 1}", "[[projects]]\nname = 'a'\nurl = 'http://a'",
		"projects = [{name = 'a'}, {}]", "projects = []", "bot.operators = [[1], {}]", "[a.b.'c d']\n\"\\u0000\" = 1", "gateway.listen = 1979-05-27", "\ufeff[gateway]",
	} {
		f.Add(text)
	}
	path := filepath.Join(f.TempDir(), "switchyard.toml")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readFile(path, (&Config{}).settings())
		if err != nil && (!strings.HasPrefix(err.Error(), path+":") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q", err)
		}
	})
}
