package console

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/a-h/templ"

	"switchyard/views"
)

func TestAPanicWhileRenderingIsAnErrorToAllItsReaders(t *testing.T) {
	var s parts
	begun, goOn := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	broken := views.Part{ID: "a", Content: templ.ComponentFunc(func(context.Context, io.Writer) error {
		begin()
		<-goOn
		panic("no such stage")
	})}
	var readers sync.WaitGroup
	read := func() {
		if part, err := s.get(t.Context(), broken, ""); err == nil || !strings.Contains(err.Error(), "no such stage") {
			t.Errorf("got %v, %v", part, err)
		}
	}
	readers.Go(read)
	<-begun
	for range 3 { // most of them wait for the first one's rendering
		readers.Go(read)
	}
	close(goOn)
	readers.Wait()

	mended := views.Part{ID: "a", Content: templ.Raw("whole")}
	if part, err := s.get(t.Context(), mended, ""); err != nil || !strings.Contains(string(part.html.plain), "whole") {
		t.Errorf("after a failure: %v, %v", part, err)
	}
}

func TestAPartIsRenderedOnceForEqualProps(t *testing.T) {
	var s parts
	rendered := 0
	get := func(url string, props any) string {
		part, err := s.get(t.Context(), views.Part{ID: "a", URL: url, Props: props, Content: templ.ComponentFunc(func(context.Context, io.Writer) error {
			rendered++
			return nil
		})}, "")
		if err != nil {
			t.Fatal(err)
		}
		return part.version
	}
	first := get("/", []string{"x"})
	if again := get("/", []string{"x"}); again != first || rendered != 1 {
		t.Errorf("rendered %d times; version %s, then %s", rendered, first, again)
	}
	if other := get("/", []string{"y"}); other != first || rendered != 2 { // the same content has the same version
		t.Errorf("rendered %d times; version %s, then %s", rendered, first, other)
	}
	get("/?q=x", []string{"y"})
	if rendered != 3 {
		t.Errorf("rendered %d times", rendered)
	}
}
