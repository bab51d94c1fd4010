//go:build unix

package signin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"switchyard/internal/domain"
	"switchyard/internal/files"
	"switchyard/internal/signin"
	"switchyard/internal/waittest"
	"switchyard/internal/wire"
)

// Some tests need separate processes: the test binary runs itself.
func TestMain(m *testing.M) {
	path := os.Getenv("SIGNIN_TEST_PATH")
	switch os.Getenv("SIGNIN_TEST_HELPER") {
	case "":
		os.Exit(m.Run())
	case "write forever":
		for i := 0; ; i++ {
			must(signin.NewFile(path).Write(numbered(i)))
		}
	case "write 20 times":
		for i := range 20 {
			patiently(func() error { return signin.NewFile(path).Write(numbered(i)) })
		}
	case "count 20 times": // another program, with a key of its own in the same file
		for range 20 {
			var unlock func()
			patiently(func() (err error) { unlock, err = files.Lock(path); return err })
			data, err := os.ReadFile(path)
			must(err)
			var all map[string]json.RawMessage
			must(json.Unmarshal(data, &all))
			n, err := strconv.Atoi(string(all["count"]))
			must(err)
			all["count"] = json.RawMessage(strconv.Itoa(n + 1))
			data, err = json.Marshal(all)
			must(err)
			must(files.WriteAtomic(path, data))
			unlock()
		}
	}
}

// patiently retries an operation that needs the lock, which is unfair: on a slow machine a process may not get it for a long time.
func patiently(do func() error) {
	err := do()
	for errors.Is(err, files.ErrLocked) {
		err = do()
	}
	must(err)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func helper(t *testing.T, what, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "SIGNIN_TEST_HELPER="+what, "SIGNIN_TEST_PATH="+path)
	return cmd
}

// numbered returns credentials whose parts all contain the number i.
func numbered(i int) domain.Credentials {
	text := strings.Repeat(strconv.Itoa(i%10), 5000)
	return domain.Credentials{AccessToken: domain.Secret(text), RefreshToken: domain.Secret(text), ExpiresAt: uint64(i), Scopes: []string{"a"}}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var sample = domain.Credentials{AccessToken: "at", RefreshToken: "rt", ExpiresAt: math.MaxUint64, Scopes: []string{"user:profile", "user:file_upload"}}

const sampleRecord = `{
    "access_token": "at",
    "refresh_token": "rt",
    "expires_at": 18446744073709551615,
    "scopes": [
      "user:profile",
      "user:file_upload"
    ],
    "subscription_type": null,
    "rate_limit_tier": null
  }`

func TestANewFileIsTheOwnersOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "config", "switchyard")
	path := filepath.Join(dir, "credentials.json")
	f := signin.NewFile(path)
	if err := f.Write(sample); err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, path), "{\n  \"oauth\": "+sampleRecord+"\n}\n"; got != want {
		t.Errorf("file = %s, want %s", got, want)
	}
	for name, mode := range map[string]fs.FileMode{path: 0o600, dir: 0o700, filepath.Dir(dir): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, %v, want %v", name, info.Mode(), err, mode)
		}
	}
	got, err := f.Read()
	if err != nil || got.AccessToken.Reveal() != "at" || got.RefreshToken.Reveal() != "rt" || got.ExpiresAt != math.MaxUint64 {
		t.Errorf("Read = %#v, %v", got, err)
	}
}

func TestOtherKeysKeepTheirOrderAndTheirText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials.json")
	const big = "123456789012345678901234567890.10"
	put(t, path, `{"zebra":`+big+`,"oauth":{"old":1},"<b>\u00e9":"\u00e9\/</script>","oauth":2,"apple":[1e400,{"b":1,"a":2,"a":3}]}`)
	f := signin.NewFile(path)
	if err := f.Write(sample); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"zebra\": " + big + ",\n  \"oauth\": " + sampleRecord + ",\n  \"<b>\\u00e9\": \"\\u00e9\\/</script>\"," +
		"\n  \"apple\": [\n    1e400,\n    {\n      \"b\": 1,\n      \"a\": 2,\n      \"a\": 3\n    }\n  ]\n}\n"
	if got := content(t, path); got != want {
		t.Errorf("after Write:\n%s, want\n%s", got, want)
	}
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, path), strings.Replace(want, "  \"oauth\": "+sampleRecord+",\n", "", 1); got != want {
		t.Errorf("after Remove:\n%s, want\n%s", got, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v, want it repaired to 0600", info.Mode(), err)
	}
	if _, err := f.Read(); err == nil {
		t.Error("Read finds a record after Remove")
	}
}

func TestRemovingWhatIsNotThereChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials.json")
	if err := signin.NewFile(path).Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	put(t, path, `{ "other":1}`)
	if err := signin.NewFile(path).Remove(); err != nil || content(t, path) != `{ "other":1}` {
		t.Errorf("%v, %s", err, content(t, path))
	}
}

func TestAFileThatIsNoJSONObjectIsLeftAlone(t *testing.T) {
	for _, text := range []string{
		"", "\n", "null", "[]", `"oauth"`, "7", "not json", `{"oauth":`, `{"a":1}{"b":2}`, `{"a":1,}`,
		"\ufeff{}", "{\"a\":\"\xff\"}", strings.Repeat(`{"a":`, 20_000),
	} {
		path := filepath.Join(t.TempDir(), "credentials.json")
		put(t, path, text)
		f := signin.NewFile(path)
		if err := f.Write(sample); !errors.Is(err, wire.ErrNoObject) {
			t.Errorf("Write over %.20q = %v", text, err)
		}
		if err := f.Remove(); !errors.Is(err, wire.ErrNoObject) {
			t.Errorf("Remove from %.20q = %v", text, err)
		}
		if _, err := f.Read(); err == nil {
			t.Errorf("Read of %.20q succeeded", text)
		}
		if content(t, path) != text {
			t.Errorf("%.20q became %.20q", text, content(t, path))
		}
	}
}

func TestOnlyAWellFormedRecordIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials.json")
	f := signin.NewFile(path)
	if _, err := f.Read(); err == nil {
		t.Error("Read without a file succeeded")
	}
	for text, ok := range map[string]bool{
		`{"oauth":{"access_token":"a","refresh_token":"r","expires_at":5}}`:                    true,
		`{"oauth":{"access_token":"","refresh_token":"","expires_at":18446744073709551615}}`:   true,
		`{"oauth":{"access_token":"a","refresh_token":"r","expires_at":0,"scopes":7}}`:         true,
		`{"oauth":{"access_token":"a","refresh_token":"r","expires_at":5},"other":[1]}`:        true,
		`{"oauth":{"access_token":"a","refresh_token":"r","expires_at":-1}}`:                   false,
		`{"oauth":{"access_token":"a","refresh_token":"r","expires_at":1.5}}`:                  false,
		`{"oauth":{"access_token":"a","refresh_token":"r","expires_at":"5"}}`:                  false,
		`{"oauth":{"access_token":"a","refresh_token":"r","expires_at":18446744073709551616}}`: false,
		`{"oauth":{"access_token":"a","refresh_token":"r"}}`:                                   false,
		`{"oauth":{"access_token":"a","refresh_token":null,"expires_at":5}}`:                   false,
		`{"oauth":{"access_token":"a","expires_at":5}}`:                                        false,
		`{"oauth":{"access_token":7,"refresh_token":"r","expires_at":5}}`:                      false,
		`{"oauth":{"Access_Token":"a","refresh_token":"r","expires_at":5}}`:                    false,
		`{"oauth":null}`: false,
		`{"oauth":[]}`:   false,
		`{"OAuth":{"access_token":"a","refresh_token":"r","expires_at":5}}`: false,
		`{}`: false,
	} {
		put(t, path, text)
		if _, err := f.Read(); (err == nil) != ok {
			t.Errorf("Read of %s = %v", text, err)
		}
	}
}

func TestALinkIsFollowedAndKept(t *testing.T) {
	dir := t.TempDir()
	path, target := filepath.Join(dir, "link"), filepath.Join(dir, "real.json")
	put(t, target, `{"other":1}`)
	if err := os.Symlink("real.json", path); err != nil {
		t.Fatal(err)
	}
	if err := signin.NewFile(path).Write(sample); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(path); err != nil || to != "real.json" {
		t.Errorf("the link is %q, %v", to, err)
	}
	if got := content(t, target); !strings.Contains(got, `"other": 1`) || !strings.Contains(got, `"at"`) {
		t.Errorf("the target holds %s", got)
	}
}

func TestAPipeDoesNotBlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials.json")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f := signin.NewFile(path)
	if _, err := f.Read(); err == nil {
		t.Error("Read of a pipe succeeded")
	}
	if err := f.Write(sample); err == nil {
		t.Error("Write to a pipe succeeded")
	}
}

func TestTidyRemovesOrphansAndRepairsTheMode(t *testing.T) {
	dir := t.TempDir()
	path, orphan := filepath.Join(dir, "credentials.json"), filepath.Join(dir, ".credentials.json.tmp")
	put(t, path, `{}`)
	put(t, orphan, `{"oauth":`)
	if err := signin.NewFile(path).Tidy(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(orphan); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the orphan is still there: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
}

func TestProcessesThatWriteAtOnceLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials.json")
	put(t, path, `{"count":0}`)
	var group sync.WaitGroup
	for _, what := range []string{"write 20 times", "count 20 times", "write 20 times", "count 20 times"} {
		group.Go(func() {
			if out, err := helper(t, what, path).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	group.Wait()
	var all struct{ Count int }
	if err := json.Unmarshal([]byte(content(t, path)), &all); err != nil || all.Count != 40 {
		t.Errorf("count = %d, %v, want 40", all.Count, err)
	}
	if c, err := signin.NewFile(path).Read(); err != nil || c.ExpiresAt != 19 {
		t.Errorf("the record is %d, %v, want the last one", c.ExpiresAt, err)
	}
}

func TestAKilledWriterLeavesAWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials.json")
	put(t, path, `{"other":7}`)
	for round := range 15 {
		cmd := helper(t, "write forever", path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Stat(path)
		waittest.Until(t, "the file is replaced", func() bool {
			now, err := os.Stat(path)
			return err == nil && !os.SameFile(before, now)
		})
		cmd.Process.Kill()
		cmd.Wait()
		c, err := signin.NewFile(path).Read()
		if err != nil || c.AccessToken != numbered(int(c.ExpiresAt)).AccessToken || c.RefreshToken != c.AccessToken {
			t.Fatalf("round %d: the record is torn: expires_at %d, %v", round, c.ExpiresAt, err)
		}
		var all struct{ Other int }
		if err := json.Unmarshal([]byte(content(t, path)), &all); err != nil || all.Other != 7 {
			t.Fatalf("round %d: the other key is %d, %v", round, all.Other, err)
		}
	}
}

func TestCredentialsDoNotPrint(t *testing.T) {
	text := fmt.Sprintf("%v %+v %#v", sample, sample, sample)
	if strings.Contains(text, `"at"`) || strings.Contains(text, `"rt"`) || strings.Contains(text, "{at ") {
		t.Errorf("printed: %s", text)
	}
}
