package alloc

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A snapshot is a row of Redis commands as they go over the wire, each an array of bulk strings: the
// commands that make all pools again, and at last ECHO with the hash of all before it. So it
// keeps any bytes exactly, and `redis-cli --pipe` can load it into a real server.
const snapshotEnd = "evenpool-snapshot-1 sha256 "

// pageArgs is how many arguments one command of a snapshot has, about.
const pageArgs = 1000

var errCutShort = errors.New("it is cut short")

// saveSnapshot reads all pools at one moment and puts them into the file, which is the old one or
// the new one at any time.
func saveSnapshot(ctx context.Context, path string, client *redis.Client) error {
	body, err := dump(ctx, client)
	if err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	sum := sha256.Sum256(body.Bytes())
	writeCommand(body, "ECHO", snapshotEnd+hex.EncodeToString(sum[:]))
	if err := replaceFile(path, body.Bytes()); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	return nil
}

// dump gives the commands that make all pools again.
func dump(ctx context.Context, client *redis.Client) (*bytes.Buffer, error) {
	metas, err := client.Keys(ctx, keyPrefix+"*}:meta").Result()
	if err != nil {
		return nil, err
	}
	slices.Sort(metas)
	type poolRead struct {
		keys     keys
		scores   map[string]*redis.ZSliceCmd
		hashes   map[string]*redis.MapStringStringCmd
		messages *redis.XMessageSliceCmd
	}
	var reads []poolRead
	_, err = client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		for _, meta := range metas {
			name := strings.TrimSuffix(strings.TrimPrefix(meta, keyPrefix), "}:meta")
			k := keysOf(name)
			read := poolRead{keys: k, scores: map[string]*redis.ZSliceCmd{}, hashes: map[string]*redis.MapStringStringCmd{}}
			for _, key := range []string{k.eligible, k.due, k.named} {
				read.scores[key] = tx.ZRangeWithScores(ctx, key, 0, -1)
			}
			for _, key := range []string{k.retired, k.record, k.meta, k.reports} {
				read.hashes[key] = tx.HGetAll(ctx, key)
			}
			read.messages = tx.XRange(ctx, k.events, "-", "+")
			reads = append(reads, read)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := new(bytes.Buffer)
	for _, read := range reads {
		for _, key := range []string{read.keys.eligible, read.keys.due, read.keys.named} {
			var pairs []string
			for _, z := range read.scores[key].Val() {
				member, _ := z.Member.(string)
				pairs = append(pairs, strconv.FormatFloat(z.Score, 'g', -1, 64), member)
			}
			writePaged(out, "ZADD", key, pairs)
		}
		for _, key := range []string{read.keys.retired, read.keys.record, read.keys.meta, read.keys.reports} {
			var pairs []string
			for field, value := range read.hashes[key].Val() {
				pairs = append(pairs, field, value)
			}
			writePaged(out, "HSET", key, pairs)
		}
		for _, message := range read.messages.Val() {
			command := []string{"XADD", read.keys.events, message.ID}
			for field, value := range message.Values {
				text, _ := value.(string)
				command = append(command, field, text)
			}
			writeCommand(out, command...)
		}
	}
	return out, nil
}

func writePaged(out *bytes.Buffer, command, key string, pairs []string) {
	for page := range slices.Chunk(pairs, pageArgs) {
		writeCommand(out, append([]string{command, key}, page...)...)
	}
}

func writeCommand(out *bytes.Buffer, words ...string) {
	fmt.Fprintf(out, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(out, "$%d\r\n%s\r\n", len(word), word)
	}
}

// replaceFile writes aside, makes sure that it is on disk, and renames.
func replaceFile(path string, content []byte) error {
	aside := path + ".new"
	file, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Write(content); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(aside, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// loadSnapshot puts a file's pools into an empty server. A missing file is an empty store; a
// damaged one is an error, and nothing of it is loaded.
func loadSnapshot(path string, client *redis.Client) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	commands, err := parseSnapshot(content)
	if err != nil {
		return fmt.Errorf("%s is damaged (%w); put back a copy, or move it away to begin with empty pools", path, err)
	}
	ctx, cancel := withBudget(context.Background())
	defer cancel()
	for page := range slices.Chunk(commands, 100) {
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, words := range page {
				pipe.Do(ctx, words...)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// parseSnapshot checks a file as a whole and gives its commands, without the last.
func parseSnapshot(content []byte) ([][]any, error) {
	var commands [][]any
	in := bufio.NewReader(bytes.NewReader(content))
	read := 0
	for {
		words, size, err := readCommand(in, len(content))
		if err != nil {
			return nil, err
		}
		switch word, _ := words[0].(string); {
		case word == "ECHO" && len(words) == 2:
			sum := sha256.Sum256(content[:read])
			if words[1] != snapshotEnd+hex.EncodeToString(sum[:]) {
				return nil, errors.New("its hash differs")
			}
			if read+size != len(content) {
				return nil, errors.New("it goes on after its end")
			}
			return commands, nil
		case word != "ZADD" && word != "HSET" && word != "XADD":
			return nil, errors.New("it holds what was never saved")
		}
		commands = append(commands, words)
		read += size
	}
}

// readCommand reads one array of bulk strings, none longer than limit, and tells its size in bytes.
func readCommand(in *bufio.Reader, limit int) (words []any, size int, err error) {
	count, size, err := readLength(in, '*', limit)
	if err != nil {
		return nil, 0, err
	}
	for range count {
		length, head, err := readLength(in, '$', limit)
		if err != nil {
			return nil, 0, err
		}
		word := make([]byte, length+2)
		if _, err := io.ReadFull(in, word); err != nil || !bytes.HasSuffix(word, []byte("\r\n")) {
			return nil, 0, errCutShort
		}
		words = append(words, string(word[:length]))
		size += head + len(word)
	}
	if len(words) == 0 {
		return nil, 0, errors.New("it holds an empty command")
	}
	return words, size, nil
}

func readLength(in *bufio.Reader, mark byte, limit int) (length, size int, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, 0, errCutShort
	}
	if line[0] != mark || !strings.HasSuffix(line, "\r\n") {
		return 0, 0, errors.New("it is no snapshot")
	}
	length, err = strconv.Atoi(line[1 : len(line)-2])
	if err != nil || length < 0 || length > limit {
		return 0, 0, errors.New("it is no snapshot")
	}
	return length, len(line), nil
}
