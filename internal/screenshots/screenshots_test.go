// Package screenshots takes the README's screenshots of a real Switchyard with made-up projects. As a test it checks that
// this works and that no page logs errors; make screenshots keeps the pictures.
package screenshots_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"switchyard/internal/browsertest"
)

var (
	out      = flag.String("out", "", "the `directory` for the pictures; the test's own when empty")
	projects = flag.Int("projects", 8, "how many projects there are")
)

func TestScreenshots(t *testing.T) {
	browsertest.Needed(t)
	dir := *out
	if dir == "" {
		dir = t.TempDir()
	}
	work := t.TempDir()
	yard := newYard(t, work, *projects)
	yard.history()
	yard.operators()
	yard.work()
	yard.url = start(t, work, yard.dirs())
	yard.live()
	yard.chat()

	tab := browsertest.Open(t)
	for _, p := range []struct {
		name, path    string
		width, height int64
		scheme        string
		shows         string
	}{
		{"overview", "/", 1280, 900, "light", "Latest events"},
		{"overview-dark", "/", 1280, 900, "dark", "Latest events"},
		{"overview-small", "/", 360, 780, "light", "Latest events"},
		{"project", "/projects/" + yard.projects[0].name, 1280, 1330, "light", "Time in stage"},
		{"events", "/events", 1280, 800, "light", "Today"},
		{"agents", "/agents", 1280, 560, "light", "builder-1"},
		{"story", yard.story(), 1280, 1500, "light", "Refunds say who has made them"},
		{"join", "/agents", 1280, 480, "light", "Waiting for the agent"},
		{"bot", "/bot-config", 1280, 560, "light", "2 rooms"},
		{"question", "/questions", 360, 780, "light", "asks to run a command"}, // the last: other pages would show it
	} {
		tab.Size(p.width, p.height)
		tab.Media("prefers-color-scheme", p.scheme, "prefers-reduced-motion", "reduce")
		if p.name == "question" {
			yard.asks()
		}
		tab.Goto(yard.url + p.path)
		if p.name == "join" {
			tab.Find("button", "Add agent").Call("function() { this.click() }") // the pointer stays away
		}
		tab.WaitText(p.shows)
		if p.name == "bot" {
			tab.Find("textbox", "Homeserver URL").Call("function() { this.value = 'https://matrix.example.org' }")
		}
		path := filepath.Join(dir, p.name+".png")
		tab.Screenshot(path)
		if *out != "" {
			crop(t, path, p.width, p.height)
		}
	}
}

// crop cuts a screenshot of a whole page to the size of the window, and compresses it.
func crop(t *testing.T, path string, width, height int64) {
	t.Helper()
	whole, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	picture, err := png.Decode(whole)
	if err != nil {
		t.Fatal(err)
	}
	window := image.NewPaletted(image.Rect(0, 0, int(width), min(int(height), picture.Bounds().Dy())), colours(picture))
	draw.Draw(window, window.Rect, picture, image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, window); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// colours returns the 256 most used colours of a picture, without those that hardly differ from another.
func colours(picture image.Image) color.Palette {
	used := map[color.NRGBA]int{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			used[color.NRGBAModel.Convert(picture.At(x, y)).(color.NRGBA)]++
		}
	}
	apart := func(a, b uint8) int { return max(int(a), int(b)) - min(int(a), int(b)) }
	var kept []color.NRGBA
	for _, c := range slices.SortedFunc(maps.Keys(used), func(a, b color.NRGBA) int { return cmp.Compare(used[b], used[a]) }) {
		alike := func(k color.NRGBA) bool { return apart(c.R, k.R)+apart(c.G, k.G)+apart(c.B, k.B) < 16 }
		if used[c] > 500 || !slices.ContainsFunc(kept, alike) {
			kept = append(kept, c)
		}
	}
	var palette color.Palette
	for _, c := range kept[:min(256, len(kept))] {
		palette = append(palette, c)
	}
	return palette
}

// start runs switchyard up on these work directories and returns its address.
func start(t *testing.T, dir string, boards []string) string {
	t.Helper()
	binary := filepath.Join(dir, "switchyard")
	if output, err := exec.Command("go", "build", "-o", binary, "switchyard/cmd/switchyard").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	args := append([]string{"up", "--listen", "localhost:0", "--data", dataDir(dir)}, boards...)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, args...)
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("switchyard: %s", stderr.String())
		}
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "Switchyard serves "); ok {
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return url
		}
	}
	t.Fatal("switchyard up did not start")
	return ""
}

// post sends JSON to the gateway, which must accept it, and returns the answer.
func (y *yardSample) post(path, body string) string { return y.send(path, body, "") }

// request posts with a token, "" for none.
func (y *yardSample) request(path, body, token string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(y.Context(), http.MethodPost, y.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return http.DefaultClient.Do(request)
}

// send is request, which must succeed, and returns the body.
func (y *yardSample) send(path, body, token string) string {
	y.Helper()
	response, err := y.request(path, body, token)
	if err != nil {
		y.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		y.Fatal(fmt.Sprint(path, " ", response.StatusCode, " ", string(answer), err))
	}
	return string(answer)
}
