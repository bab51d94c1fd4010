//go:build deps

// Package deps pins the modules that are about to be used. It goes once each has a user.
package deps

import (
	_ "github.com/VictoriaMetrics/metrics"
	_ "github.com/a-h/templ"
	_ "github.com/chromedp/chromedp"
	_ "github.com/fsnotify/fsnotify"
	_ "github.com/getkin/kin-openapi/openapi3"
	_ "github.com/getkin/kin-openapi/openapi3filter"
	_ "github.com/go-chi/chi/v5"
	_ "github.com/go-chi/httprate"
	_ "github.com/google/renameio/v2"
	_ "github.com/gorilla/securecookie"
	_ "github.com/klauspost/compress/gzhttp"
	_ "github.com/pelletier/go-toml/v2"
	_ "github.com/spf13/cobra"
	_ "github.com/yuin/goldmark"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sync/singleflight"
	_ "golang.org/x/sys/unix"
	_ "modernc.org/sqlite"
)
