#!/bin/sh
# Greets whoever is named, or the world.
printf 'Hello, %s!\n' "${1:-world}"
