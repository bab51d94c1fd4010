package screenshots_test

import (
	"os"
	"path/filepath"

	"switchyard/internal/bottest"
)

const operator = "@alice:example.org"

// operators adds the users who may invite the bot to the configuration file.
func (y *yardSample) operators() {
	y.Helper()
	dir := filepath.Join(y.dir, ".config", "switchyard")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		y.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "switchyard.toml"), []byte("[bot]\noperators = ['"+operator+"']\n"), 0o600); err != nil {
		y.Fatal(err)
	}
}

// chat connects the bot to a homeserver, and invites it to two rooms.
func (y *yardSample) chat() {
	y.Helper()
	home := bottest.NewHomeserver(y.TB)
	y.post("/api/gateway/bot-config", string(encode(y, home.Config().Values())))
	for _, room := range []string{"builds", "on-call"} {
		home.Create("!"+room+":example.org", room, operator, false)
		home.Invite("!"+room+":example.org", operator)
	}
}
