package projectserver_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/feed"
	"switchyard/internal/gitlog"
	"switchyard/internal/projectserver"
)

// A board of two stages, served without its history.
func ExampleServer() {
	dir, err := os.MkdirTemp("", "board")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{"1_backlog/8_story_search.md": "# Search\n", "2_current/7_story_pay.md": "# Pay\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			panic(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			panic(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	ring := feed.New(time.Now)
	shop, err := board.Open(board.Options{Dir: dir, Log: log, Record: ring.Record}) // shop.Run follows its files
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(projectserver.Server{
		Name: "shop", Board: shop, Feed: ring, Commits: gitlog.New(gitlog.Options{Dir: dir, Board: shop, Log: log}), Log: log,
	}.Handler())
	defer server.Close()
	answer, err := server.Client().Get(server.URL + "/api/events?since=0")
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	events, err := io.ReadAll(answer.Body)
	fmt.Println(answer.Status, string(events), err)
	for _, stage := range shop.View().Stages {
		for _, story := range stage.Stories {
			fmt.Println(stage.Name, story.ID)
		}
	}
	// Output:
	// 200 OK [] <nil>
	// 1_backlog 8_story_search
	// 2_current 7_story_pay
}
