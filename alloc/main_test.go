package alloc_test

import (
	"os"
	"testing"

	"evenpool/alloc/alloctest"
)

func TestMain(m *testing.M) { os.Exit(alloctest.Main(m)) }
