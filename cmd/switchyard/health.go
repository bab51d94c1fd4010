package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"switchyard/internal/config"
	"switchyard/internal/neterr"
)

// healthLimit is how long a server may take to say that it serves.
const healthLimit = 5 * time.Second

func healthCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check whether the server on this machine serves, for container health checks",
		Long: "Ask the gateway on this machine for /healthz, at the address that the gateway itself would listen on. The exit status is 0\n" +
			"if it serves, else 1. For a project server, give its address with --listen.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address, err := config.LoadListen(cmd.Flags(), os.Getenv)
			if err != nil {
				return asUsage(err)
			}
			return checkHealth(cmd.Context(), localURL(address)+"/healthz")
		},
	}
	config.AddListenFlags(cmd.Flags())
	cmd.Flags().Lookup("listen").Usage = "ask the server that listens on `ADDR` (HOST:PORT) [$SWITCHYARD_LISTEN]"
	return cmd
}

// localURL is where a server that listens on address is reached from this machine.
func localURL(address string) string {
	host, port, _ := net.SplitHostPort(address) // the configuration has checked it
	switch ip, err := netip.ParseAddr(host); {
	case host == "", err == nil && ip.IsUnspecified() && ip.Is4():
		host = "127.0.0.1"
	case err == nil && ip.IsUnspecified():
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func checkHealth(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Host = "localhost" // a name that every server of ours answers to
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return fmt.Errorf("%s: %s", address, neterr.Describe(err, healthLimit))
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d", address, response.StatusCode)
	}
	return nil
}
