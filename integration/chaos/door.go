package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// door stands in front of Sentinel for one way. Sentinel tells every client the
// same addresses; here the ports in its answers are those of the way's own links,
// so that one filter can be cut from Redis and the others not. Both have five
// digits, so that no length that an answer (RESP) tells is wrong.
type door struct {
	listener net.Listener
	sentinel string
	instead  map[string]string // ports
	ctx      context.Context   //nolint:containedctx // of the connections, which nobody waits for
	end      context.CancelFunc
	all      sync.WaitGroup
}

func openDoor(ctx context.Context, sentinel string, instead map[string]string) (*door, error) {
	for told, own := range instead {
		if len(told) != len(own) {
			return nil, fmt.Errorf("ports %s and %s differ in length", told, own)
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a door to Sentinel: %w", err)
	}
	d := &door{listener: l, sentinel: sentinel, instead: instead}
	d.ctx, d.end = context.WithCancel(context.WithoutCancel(ctx))
	d.all.Go(d.run)
	return d, nil
}

func (d *door) addr() string { return d.listener.Addr().String() }

func (d *door) close() {
	d.end()
	_ = d.listener.Close()
	d.all.Wait()
}

func (d *door) run() {
	for {
		c, err := d.listener.Accept()
		if err != nil {
			return
		}
		d.all.Go(func() { d.serve(c) })
	}
}

// serve copies both ways until one side ends.
func (d *door) serve(client net.Conn) {
	server, err := (&net.Dialer{}).DialContext(d.ctx, "tcp", d.sentinel)
	if err != nil {
		_ = client.Close()
		return
	}
	shut := sync.OnceFunc(func() { _ = errors.Join(client.Close(), server.Close()) })
	defer context.AfterFunc(d.ctx, shut)()
	d.all.Go(func() {
		_, _ = io.Copy(server, client)
		shut()
	})
	d.translate(client, server)
	shut()
}

// translate copies line by line; what Sentinel sends has no others.
func (d *door) translate(to io.Writer, from io.Reader) {
	lines := bufio.NewReader(from)
	w := bufio.NewWriter(to)
	for {
		line, err := lines.ReadBytes('\n')
		for told, own := range d.instead {
			line = bytes.ReplaceAll(line, []byte(told), []byte(own))
		}
		_, wrong := w.Write(line)
		if lines.Buffered() == 0 {
			wrong = errors.Join(wrong, w.Flush())
		}
		if err != nil || wrong != nil {
			return
		}
	}
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr) // ours
	return p
}
