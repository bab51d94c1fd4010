package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"switchyard/internal/config"
	"switchyard/internal/neterr"
)

const healthLimit = 5 * time.Second

func healthCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check whether the server on this machine is up, for container health checks",
		Long: "Request /healthz from the gateway on this machine, at the address that it is configured to listen on.\n" +
			"The exit status is 0 if it responds, else 1. To check a project server, pass its address with --listen.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadSome(cmd.Flags(), os.Getenv, "gateway.listen")
			if err != nil {
				return err
			}
			return checkHealth(cmd.Context(), localURL(c.Listen)+"/healthz")
		},
	}
	config.AddFlags(cmd.Flags(), "listen")
	cmd.Flags().Lookup("listen").Usage = "check the server that listens on `ADDR` (HOST:PORT) [$SWITCHYARD_LISTEN]"
	return cmd
}

// localURL returns the address at which this machine reaches a server that listens on address.
func localURL(address string) string {
	host, port, _ := net.SplitHostPort(address) // the configuration has checked it
	switch ip, err := netip.ParseAddr(host); {
	case host == "", err == nil && ip.IsUnspecified() && ip.Is4():
		host = "127.0.0.1"
	case err == nil && ip.IsUnspecified():
		host = "::1"
	}
	return httpURL(host, port)
}

// httpURL is a URL of a host, which may be an IPv6 address with a zone.
func httpURL(host, port string) string {
	address := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}
	return address.String()
}

func checkHealth(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Host = "localhost" // all our servers accept this name
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
