package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/waittest"
)

// taskMasterFile is where Task Master keeps its tasks.
const taskMasterFile = ".taskmaster/tasks/tasks.json"

type taskMasterTasks struct {
	Master struct {
		Tasks    []map[string]any `json:"tasks"`
		Metadata map[string]any   `json:"metadata"`
	} `json:"master"`
}

// labels does what Task Master does to a task: it takes the lock, which is a directory, reads the file, changes it and puts
// another in its place. A lock that was not touched for 10 s was left behind. It fails if somebody else writes meanwhile.
func (c *twoWriters) labels(task int) error {
	path := filepath.Join(c.dir, taskMasterFile)
	lock := path + ".lock"
	for {
		err := os.Mkdir(lock, 0o755)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		c.refused.Add(1)
		if info, err := os.Stat(lock); err == nil && time.Since(info.ModTime()) > 10*time.Second {
			_ = os.Remove(lock)
		}
		c.pause()
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var file taskMasterTasks
	if err := json.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("the file is not whole: %w", err)
	}
	file.Master.Tasks[task]["label"] = "tool"
	changed, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	c.pause()
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(text, again) {
		return fmt.Errorf("the file was written although it is locked: %v", err)
	}
	if err := errors.Join(os.WriteFile(path+".tool", changed, 0o644), os.Rename(path+".tool", path)); err != nil {
		return err
	}
	return os.Remove(lock)
}

type twoWriters struct {
	dir                string
	refused, conflicts atomic.Int64
	ours               atomic.Pointer[process]
}

// pause lets other writers in.
func (c *twoWriters) pause() { <-time.After(time.Millisecond) }

// moves moves a task, again until it stands there, whoever was in the way.
func (c *twoWriters) moves(id int) error {
	path := fmt.Sprintf("/api/stories/%d", id)
	for until := time.Now().Add(3 * time.Minute); time.Now().Before(until); c.pause() {
		p := c.ours.Load()
		status, text, err := p.ask("GET", path, "")
		var story struct{ Stage, Version string }
		if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &story) != nil {
			continue // it was killed
		}
		if story.Stage == "4_done" {
			return nil
		}
		status, text, err = p.ask("PATCH", path, `{"stage":"4_done","version":"`+story.Version+`"}`)
		if err == nil && status != http.StatusOK && status != http.StatusConflict {
			return fmt.Errorf("%d: %s", status, text)
		}
		if status == http.StatusConflict {
			c.conflicts.Add(1)
		}
	}
	return errors.New("it cannot be moved for three minutes")
}

// TestTaskMasterAndSwitchyardWriteAtOnce, each all of 80 tasks, while ours is killed again and again: no change is lost, the
// file is whole at each moment, and each honours the other's lock.
func TestTaskMasterAndSwitchyardWriteAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 240 times, and waits for locks that were left behind")
	}
	t.Parallel()
	const count = 80
	c := &twoWriters{dir: t.TempDir()}
	var file taskMasterTasks
	for i := range count {
		file.Master.Tasks = append(file.Master.Tasks, map[string]any{
			"id": i + 1, "title": fmt.Sprint("Task ", i+1), "details": strings.Repeat("text\n", 50), "status": "pending",
		})
	}
	file.Master.Metadata = map[string]any{"created": "2025-06-14T21:30:21.214Z"}
	text, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	plant(t, c.dir, map[string]string{taskMasterFile: string(text)})
	serve := func() {
		c.ours.Store(start(t, switchyard(t, c.dir, "project", "--name=alpha", "--work=DIR", "--listen=127.0.0.1:0", "--allow-writes")))
	}
	serve()
	var writers sync.WaitGroup
	var left atomic.Int64
	write := func(change func(i int) error) {
		left.Add(1)
		writers.Go(func() {
			defer left.Add(-1)
			for i := range count {
				if err := change(i); err != nil {
					t.Errorf("task %d: %v", i+1, err)
					return
				}
			}
		})
	}
	write(c.labels)
	write(func(i int) error { return c.moves(i + 1) })
	write(func(i int) error { return c.moves(count - i) })
	for kills := range 3 {
		waittest.Until(t, "some changes", func() bool {
			text, err := os.ReadFile(filepath.Join(c.dir, taskMasterFile))
			return left.Load() == 0 || err == nil && strings.Count(string(text), `"done"`) > (kills+1)*count/5
		})
		c.ours.Load().stop(t, syscall.SIGKILL)
		serve()
	}
	writers.Wait()
	c.ours.Load().stop(t, syscall.SIGTERM)
	serve() // which removes what a killed one has left
	if text, err = os.ReadFile(filepath.Join(c.dir, taskMasterFile)); err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil || len(file.Master.Tasks) != count {
		t.Fatalf("%d tasks, %v", len(file.Master.Tasks), err)
	}
	for _, task := range file.Master.Tasks {
		if task["status"] != "done" || task["label"] != "tool" || task["updatedAt"] == nil {
			t.Errorf("%v", task)
		}
	}
	entries, err := os.ReadDir(filepath.Join(c.dir, ".taskmaster/tasks"))
	if err != nil || len(entries) != 1 {
		t.Errorf("there are %v, %v", entries, err)
	}
	t.Logf("the tool met our lock %d times, we met a change or its lock %d times", c.refused.Load(), c.conflicts.Load())
}
