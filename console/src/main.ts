import { mount } from "svelte";
import App from "./App.svelte";
import { theme } from "./lib/theme.svelte";
import "./styles.css";

theme.apply();
mount(App, { target: document.getElementById("app")! });
