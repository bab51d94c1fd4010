package botfile_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"switchyard/internal/botfile"
	"switchyard/internal/domain"
)

func TestWithoutAFile(t *testing.T) {
	got, err := botfile.File{Path: filepath.Join(t.TempDir(), "none", "bot.toml")}.Load()
	if want := (domain.BotConfig{Transport: domain.BotMatrix}); err != nil || !got.Equal(want) {
		t.Errorf("Load = %+v, %v; want %+v", got, err, want)
	}
}

func TestFileKeepsEveryValue(t *testing.T) {
	everything := ""
	for r := range rune(0x300) {
		everything += string(r)
	}
	everything += "\r\n'''\"\"\"\\ \u2028 \U0001F682"
	for _, want := range []domain.BotConfig{
		{Transport: domain.BotTeam, Settings: map[string]domain.Secret{}},
		{Transport: domain.BotMatrix, Settings: map[string]domain.Secret{
			"homeserver": "", "username": "", "password": "", "team_bot_token": "", "team_signing_secret": "",
		}},
		{Transport: domain.BotMatrix, Settings: map[string]domain.Secret{
			"homeserver": domain.Secret(everything), "password": domain.Secret(everything),
		}},
		{Transport: domain.BotTeam, Settings: map[string]domain.Secret{
			"username": "a", "team_bot_token": "xoxb-1", "team_signing_secret": "s",
		}},
	} {
		file := botfile.File{Path: filepath.Join(t.TempDir(), "a", "bot.toml")}
		if err := file.Save(want); err != nil {
			t.Fatal(err)
		}
		got, err := file.Load()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Load = %#v, %v; want %#v", got, err, want)
		}
		info, err := os.Stat(file.Path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
		}
	}
}

func TestFileEditedByHand(t *testing.T) {
	for _, c := range []struct{ content, want, message string }{
		{"", `{"Transport":"matrix"}`, ""},
		{"transport = \"team\"\nteam_bot_token = ''\nnote = 1", `{"Transport":"team","Settings":{"team_bot_token":""}}`, ""},
		{"transport = \"irc\"", "", "transport: must be matrix or team"},
		{"transport = \"matrix\"\npassword = hunter2", "", "line 2"},
		{"transport = \"matrix\"\npassword = 12345", "", "password must be a string"},
		{"[password]\nhunter2 = 1", "", "not a bot configuration in TOML"},
	} {
		file := botfile.File{Path: filepath.Join(t.TempDir(), "bot.toml")}
		if err := os.WriteFile(file.Path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := file.Load()
		if c.message != "" {
			if message := domain.MessageOf(err); !strings.Contains(message, c.message) || !strings.Contains(message, file.Path) || strings.Contains(message, "hunter2") || strings.Contains(message, "12345") {
				t.Errorf("%q: Load says %q, want the file, %q and no secret", c.content, message, c.message)
			}
			continue
		}
		var want domain.BotConfig
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if err != nil || !got.Equal(want) {
			t.Errorf("%q: Load = %#v, %v; want %#v", c.content, got, err, want)
		}
	}
}

func TestFileIsTidied(t *testing.T) {
	dir := t.TempDir()
	file := botfile.File{Path: filepath.Join(dir, "bot.toml")}
	os.WriteFile(file.Path, nil, 0o644)
	os.Chmod(file.Path, 0o644)
	os.WriteFile(filepath.Join(dir, ".bot.toml.tmp"), nil, 0o600)
	if err := file.Tidy(); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(file.Path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	if _, err := os.Stat(filepath.Join(dir, ".bot.toml.tmp")); err == nil {
		t.Error("an orphaned temporary file stayed")
	}
}

// FuzzBotFile: reading any file results in a configuration that survives saving and reading again, or in a one-line error that
// names the file.
func FuzzBotFile(f *testing.F) {
	for _, text := range []string{
		"", "transport = 'team'\nteam_bot_token = ''", "transport = 'matrix'\nhomeserver = \"https://a\"\npassword = '''\na\n'''", "transport = 7",
		"transport = 'irc'", "[transport]", "password = \"\\u0000\\U0001F600\"", "username = 'a'\nusername = 'b'", "password = 'x", "\xff", "[[a]]\n[a.b]",
	} {
		f.Add(text)
	}
	file := botfile.File{Path: filepath.Join(f.TempDir(), "bot.toml")}
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(file.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := file.Load()
		if err != nil {
			if message := domain.MessageOf(err); !strings.HasPrefix(message, file.Path) || strings.Contains(message, "\n") {
				t.Errorf("%q", message)
			}
			return
		}
		if err := file.Save(c); err != nil {
			t.Fatal(err)
		}
		if again, err := file.Load(); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%+v becomes %+v, %v", c, again, err)
		}
	})
}
